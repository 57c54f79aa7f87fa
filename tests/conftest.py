"""How all tests use Hypothesis, and which of them may run beside each other.

Hypothesis: the same examples in every run, however slow or busy the machine is; `pytest --hypothesis-profile=explore`
tries others.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("explore", settings.get_profile("steady"), derandomize=False)
settings.load_profile("steady")

TESTS = Path(__file__).parent
# Most tests of these start several ranks, which want all cores: one after the other, in one of the workers.
OF_RANKS = [TESTS / name for name in ("mpi", "chain", "examples", "cli/test_chain.py")]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that start ranks together in one worker of pytest-xdist (`--dist loadgroup`), if that is here."""
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if any(item.path.is_relative_to(place) for place in OF_RANKS):
                item.add_marker(pytest.mark.xdist_group("ranks"))
