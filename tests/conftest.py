# SPDX-License-Identifier: Apache-2.0
"""How all tests use Hypothesis, what they build on first use, and which of them may run beside each other.

Hypothesis: the same examples in every run, however slow or busy the machine is; `pytest --hypothesis-profile=explore`
tries others.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

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
# Where Quipu keeps the PMPI library of each MPI and modules of flang: built once for all tests, under a name that is a
# hash over all that goes into them.
os.environ.setdefault("XDG_CACHE_HOME", str(TESTS.parent / "build" / "cache"))
# Ranks of one host exchange messages through shared memory: Open MPI 5 prints errors where TCP reaches no interface.
# Without TCP, libfabric (ofi) would take its place: MPI_Finalize takes a second then.
os.environ.setdefault("OMPI_MCA_btl", "^tcp,ofi")
# Tests start thousands of commands, which would compile their modules each time where none may be kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.path.insert(0, str(TESTS / "examples"))
# Most tests of these start several ranks, which want all cores: one after the other, in one of the workers.
OF_RANKS = (
    "tests/mpi/",
    "tests/chain/",
    "tests/examples/",
    "tests/cli/test_chain.py",
    "tests/docs/test_documented_commands.py",
)
OF_SLURM = "tests/agent/campaign/test_slurm.py"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With pytest-xdist, one worker runs the tests that start ranks, beginning with them; the others share the rest.

    Those of Slurm, which mostly wait for it, are together too: they share one cluster.
    """
    from xdist.scheduler import LoadScopeScheduling

    class RanksTogether(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(OF_SLURM):
                return "slurm"
            return "ranks" if nodeid.startswith(OF_RANKS) else nodeid

    return RanksTogether(config, log)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All examples by name, built once each with the compiler behind mpicc (`example_programs.Program`)."""
    from example_programs import ALL, build

    return {name: build(name, tmp_path_factory.mktemp("plain")) for name in ALL}
