# SPDX-License-Identifier: Apache-2.0
"""Configure Hypothesis, build fixtures on first use, and select the tests that may run in parallel.

Hypothesis uses the same examples in every run, independently of the speed of the machine;
`pytest --hypothesis-profile=explore` uses other examples.
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
# Cache for the PMPI library of each MPI and for modules of flang. They are built once for all tests; their names
# contain a hash over all their inputs.
os.environ.setdefault("XDG_CACHE_HOME", str(TESTS.parent / "build" / "cache"))
# Ranks of one host exchange messages through shared memory. With TCP, Open MPI 5 prints errors if an interface is
# unreachable. With libfabric (ofi), MPI_Finalize takes a second.
os.environ.setdefault("OMPI_MCA_btl", "^tcp,ofi")
# Tests start thousands of commands. Without stored bytecode, each of them would compile its modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.path.insert(0, str(TESTS / "examples"))
# Most tests in these folders start several ranks, which need all cores. They run one after the other in one worker.
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
    """With pytest-xdist, run all tests that start ranks in one worker, first; the other workers share the other tests.

    The tests of Slurm, which mostly wait, also run in one worker, because they share one cluster.
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
