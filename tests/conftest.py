"""How all tests use Hypothesis: the same examples in every run, however slow or busy the machine is.

`pytest --hypothesis-profile=explore` tries others.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("explore", settings.get_profile("steady"), derandomize=False)
settings.load_profile("steady")
