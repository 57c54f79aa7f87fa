# SPDX-License-Identifier: Apache-2.0
"""Find uses of files that do not scale, for `quipu diagnose`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from quipu.modeling.analysis import Analysis
from quipu.modeling.experiment import Experiment
from quipu.modeling.file_use import FileFinding
from quipu.modeling.file_use import file_uses as found_in
from quipu.modeling.priors.rank_parameters import rank_parameters

from ..load.measurements import load


def file_uses(
    source: Path, experiment: Experiment, analysis: Analysis, point: Mapping[str, float]
) -> tuple[FileFinding, ...]:
    """Return the uses of files that do not scale up to `point`; empty if the runs did not count uses of files."""
    if "file_writes" not in experiment.values:
        return ()
    of_ranks = rank_parameters(experiment)
    ranks = next((name for name in experiment.parameters if name in of_ranks), None)
    return found_in(experiment, load(source, "max").of_time, analysis, ranks, point)
