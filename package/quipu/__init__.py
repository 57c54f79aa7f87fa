# SPDX-License-Identifier: Apache-2.0
"""Quipu measures parallel programs and models how they scale; `quipu.open` reads what was measured.

Nothing is imported here but when it is needed: every process of a measured program may load parts of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from os import PathLike

    from quipu.agent.archive.run import RunArchive
    from quipu.modeling.experiment import Experiment

__all__ = ["open"]


def open(path: str | PathLike[str], over_ranks: Literal["mean", "max", "sum"] = "mean") -> RunArchive | Experiment:
    """Return a run if `path` is the folder of one run archive, else the experiment that is there.

    Experiments are folders of run archives, files of Extra-P in any of its formats, and profiles of other tools.
    over_ranks: how the ranks of a run combine to one value in an experiment; a run has the values of every rank.

    Raises FormatError naming the file at fault if nothing of that kind can be read there, UsageError for an
    `over_ranks` that does not fit, and MeasurementError for a folder without a complete run (`quipu.modeling.errors`).
    """
    from pathlib import Path

    from quipu.agent.cli.measurements import is_run, load

    source = Path(path)
    if source.is_dir() and is_run(source):
        from quipu.agent.archive.read import read_archive

        return read_archive(source)
    return load(source, over_ranks)
