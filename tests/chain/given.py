# SPDX-License-Identifier: Apache-2.0
"""Replace measured times by given times of regions and given overhead, so that tests do not depend on the machine.

Programs are built, run and recorded as usual. Then the seconds in the result are replaced; visits and effort stay.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from quipu.agent.archive.read import read_archive
from quipu.agent.archive.run import RunArchive
from quipu.agent.archive.write import write_archive
from quipu.agent.campaign.refinement import Measuring
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.launch.process import Ending, run_process
from quipu.agent.merge.statistics import cells_of, statistics_of
from quipu.modeling.experiment import FloatArray

PAIR = 50e-9
"""Seconds of an enter and exit, all of it outside of the region."""
RECORDING = 0.004
"""Processor seconds of each process for the start and end of the recording."""
OF_MPI = 1e-6
"""Seconds of a visit of an MPI function."""

Seconds = Callable[[Mapping[str, float]], float]


@dataclass(frozen=True)
class Given:
    """A program: for each of its regions the caller ("" for main), and its own seconds in each rank at a point.

    A region without a hook is part of its caller.
    """

    regions: Mapping[str, tuple[str, Seconds]]

    @property
    def measuring(self) -> Measuring:
        """Return the functions of this program for a refinement."""
        return Measuring(self.recorded, self.plain, itertools.count().__next__)

    def processor(self, point: Mapping[str, float]) -> float:
        """Return the processor seconds of all ranks without instrumentation."""
        return point.get("p", 1) * sum(seconds(point) for _, seconds in self.regions.values())

    def plain(
        self, command: Sequence[str], environment: Mapping[str, str], timeout: float | None, folder: Path
    ) -> Ending:
        """Run the program: `./program N` or `mpirun -n P ./program N`."""
        ending = run_process(command, environment, timeout, folder)
        point = {"n": float(command[-1]), **({"p": float(command[2])} if command[0] == "mpirun" else {})}
        processor = self.processor(point)
        return replace(ending, seconds=processor / point.get("p", 1), processor_seconds=processor)

    def recorded(
        self,
        command: Sequence[str],
        parameters: Mapping[str, float],
        repetition: int | None,
        folder: Path,
        options: LaunchOptions,
    ) -> RunArchive:
        """Run and record the program."""
        path = run(command, parameters, repetition, folder, options).path
        measured = read_archive(path)
        shutil.rmtree(path)
        return write_archive(self.instead(measured), folder)

    def instead(self, measured: RunArchive) -> RunArchive:
        """Return the measured run with the given seconds."""
        tree, values, metadata = measured.tree, measured.values, measured.metadata
        assert values is not None
        visits = values.metrics["visits"].astype(np.float64)
        seconds = self.seconds(measured)[values.callpath]
        callers = tree.parent[values.callpath]
        for row in range(visits.size):  # hooks of a region take time of its caller
            hooks = (callers == values.callpath[row]) & (values.rank == values.rank[row])
            seconds[row] += PAIR * visits[hooks].sum()
        metrics = {**values.metrics, "time": seconds, "overhead": PAIR * visits}
        values = replace(values, metrics=metrics)
        ranks = np.array(sorted(record.rank for record in measured.ranks))
        processor = self.processor(metadata.parameters) + PAIR * visits.sum() + RECORDING * ranks.size
        metadata = replace(
            metadata,
            processor_seconds=float(processor),
            overhead={**metadata.overhead, "pair": PAIR, "outside": PAIR},
        )
        cells = cells_of(values, metadata.metrics, ranks, len(tree)).cells
        return replace(
            measured, metadata=metadata, values=values, statistics=statistics_of(cells, metadata.metrics), path=Path()
        )

    def seconds(self, measured: RunArchive) -> FloatArray:
        """Return the own seconds of each call path in a rank, with those of regions that have no hook."""
        tree = measured.tree
        names = [tree.region_of(path).name for path in range(len(tree))]
        found = np.array([OF_MPI if name.startswith("MPI_") else 0.0 for name in names])
        for name, (_, seconds) in self.regions.items():
            hooked = name
            while hooked not in names:
                hooked = self.regions[hooked][0]
            found[names.index(hooked)] += seconds(measured.metadata.parameters)
        return found
