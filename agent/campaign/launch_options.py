# SPDX-License-Identifier: Apache-2.0
"""How a launch is measured."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quipu.modeling.machine import Machine

from ..counters.sampling import RATE
from ..merge.run import column_ranks_wanted

CLOCKS = ("tsc", "monotonic", "none")
WAITS = ("off", "local", "sample", "all")


@dataclass(frozen=True)
class LaunchOptions:
    """How to measure.

    clock: one of `CLOCKS`, None: the best there is; "none" keeps no time (a count-only run). filter_file: Score-P
    filter honoured at run time. environment: further variables for the program. timeout: seconds. mpi_preload: the MPI
    library to put before the program (None: the one that fits the launcher, built if need be); mpi=False: none.
    mpi_wait: one of `WAITS`, how waiting in MPI is separated from transfer (None: $QUIPU_MPI_WAIT, else "local":
    barriers that nobody asked for could hang a program of which only a part is wrapped).
    rates: a file of rates, by which simulated ranks compute (None: as long as it takes on this machine).
    counters: a source of counters, or names of some (`counters.choose`); None: effort alone. machine: whose caches a
    source simulates (None: this one's). sampling_rate: samples per second of processor time, for sources that sample.
    functions: sample functions that were not instrumented, too. memory: count allocations. files: count what is read
    and written. offload: count kernels on devices, and copies to and from them.
    python: functions of Python programs become regions. mpi_reduce: the ranks reduce their profiles in MPI_Finalize
    (None: $QUIPU_MPI_REDUCE, else if all ranks run the same program). rank_columns: up to so many ranks the archive has
    the values of each, above statistics (None: `merge.column_ranks_wanted`).
    template: facts for the fingerprint of the run of the campaign that it belongs to.
    warns: say before the start what will make the numbers worthless.
    folder: the working folder of the program (None: the current one). say: takes one line of text for the user.
    """

    clock: str | None = None
    filter_file: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    mpi: bool = True
    mpi_preload: Path | None = None
    mpi_wait: str | None = None
    rates: Path | None = None
    counters: str | None = None
    machine: Machine | None = None
    sampling_rate: int = RATE
    functions: bool = False
    memory: bool = False
    files: bool = False
    offload: bool = False
    python: bool = False
    mpi_reduce: bool | None = None
    rank_columns: int | None = None
    template: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    node_agent: bool = True
    warns: bool = False
    say: Callable[[str], None] = lambda text: print(f"quipu: {text}", file=sys.stderr)

    @property
    def counts_only(self) -> bool:
        """Whether the run counts effort and communication and keeps no time."""
        environment = {**os.environ, **self.environment}
        return (self.clock or environment.get("QUIPU_CLOCK", "")) == "none"

    @property
    def rank_columns_wanted(self) -> int:
        """Up to how many ranks the archive has the values of each."""
        return column_ranks_wanted() if self.rank_columns is None else self.rank_columns
