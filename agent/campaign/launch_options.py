# SPDX-License-Identifier: Apache-2.0
"""Options of a measured launch."""

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
    """Options of a measured launch.

    - clock: one of `CLOCKS`; None: $QUIPU_CLOCK, or the best available; "none": no times (a count-only run).
    - filter_file: a Score-P filter that is applied at run time; None: no filter.
    - environment: further environment variables of the program.
    - timeout: time limit in seconds; None: no limit.
    - mpi: whether to measure MPI.
    - mpi_preload: the wrapper library for MPI to preload; None: the library for the MPI of the launcher, which is built
      if necessary.
    - mpi_wait: the way to separate waiting in MPI from transfer, one of `WAITS`. None: $QUIPU_MPI_WAIT, or "local".
      "sample" and "all" add barriers, which could deadlock a program if only some of its MPI calls are intercepted.
    - rates: a file of rates for simulated computation; None: simulated computation takes its time on this machine.
    - counters: a counter source, or names of sources (`counters.choose`); None: only effort.
    - machine: the machine whose caches a counter source simulates; None: this machine.
    - sampling_rate: samples per second of processor time.
    - functions: whether to sample functions without instrumentation, too.
    - memory: whether to count allocations. files: whether to count reading and writing of files.
    - offload: whether to count kernels on devices and copies to and from them.
    - python: whether functions of a Python program become regions.
    - mpi_reduce: whether the ranks reduce their profiles in MPI_Finalize. None: $QUIPU_MPI_REDUCE; if this is not set,
      they do so if all ranks run the same program.
    - rank_columns: largest number of ranks for which the archive contains the values of each rank; None:
      `merge.column_ranks_wanted`.
    - template: facts of the campaign for the fingerprint of the run.
    - folder: the working folder of the program; None: the current folder.
    - node_agent: whether to start the node agent, a process on each node that records its load and the ends of ranks.
    - warns: whether to warn before the start about conditions that make the measurement useless.
    - say: function that prints one line for the user.
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
        """Return whether the run counts effort and communication without times."""
        environment = {**os.environ, **self.environment}
        return (self.clock or environment.get("QUIPU_CLOCK", "")) == "none"

    @property
    def rank_columns_wanted(self) -> int:
        """Return the largest number of ranks for which the archive contains the values of each rank."""
        return column_ranks_wanted() if self.rank_columns is None else self.rank_columns
