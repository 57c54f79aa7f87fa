# SPDX-License-Identifier: Apache-2.0
"""The file declared.json in the folder of an experiment: declarations of the campaign that the runs do not contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from quipu.modeling.documents import Real, typed
from quipu.modeling.errors import FormatError
from quipu.modeling.process_grid import MOST_DIMENSIONS, RULES, ProcessGrid

from ..archive.metadata import RunMetadata
from ..archive.run_json import read_json, write_json

FILE = "declared.json"
_FORMAT = "quipu-declared"


@dataclass(frozen=True)
class DeclaredGrid:
    """The process grid. parameter: the parameter that is the number of ranks. rule: a name in `RULES`."""

    parameter: str
    rule: str
    dimensions: int


@dataclass(frozen=True)
class Declared:
    """The declarations of an experiment.

    campaign: path of the campaign file, which may have changed since. grid: None if none is declared. target: the
    default point of predictions, by parameter; empty if none is declared.
    """

    campaign: str = ""
    grid: DeclaredGrid | None = None
    target: dict[str, Real] = field(default_factory=dict)
    format: str = _FORMAT


def write_declared(folder: Path, campaign: Path, grid: ProcessGrid | None, target: Mapping[str, float]) -> None:
    """Store the declarations of a campaign in the folder of its experiment. campaign: path of its file."""
    own = None if grid is None else DeclaredGrid(grid.parameter, grid.rule, grid.dimensions)
    write_json(folder / FILE, asdict(Declared(str(campaign.absolute()), own, dict(target))))


def read_declared(folder: Path) -> Declared:
    """Return the declarations of the experiment in a folder; all empty without declared.json.

    Raises FormatError if the file is invalid.
    """
    path = folder / FILE
    if not path.is_file():
        return Declared()
    found = typed(read_json(path), Declared, path)
    if found.format != _FORMAT:
        raise FormatError(path, f'is not a file of this kind: "format" should be "{_FORMAT}"')
    grid = found.grid
    if grid is not None and (grid.rule not in RULES or not 2 <= grid.dimensions <= MOST_DIMENSIONS):
        raise FormatError(path, f"grid: the rule {grid.rule!r} with {grid.dimensions} dimensions does not exist")
    return found


def with_declared(runs: Sequence[RunMetadata], declared: Declared) -> list[RunMetadata]:
    """Return the metadata of runs, in which a declared process grid replaces the grid that the program created."""
    grid = declared.grid
    if grid is None:
        return list(runs)
    rule = ProcessGrid(grid.parameter, grid.rule, grid.dimensions, "declared")
    return [_with_grid(run, rule) for run in runs]


def _with_grid(run: RunMetadata, rule: ProcessGrid) -> RunMetadata:
    ranks = run.parameters.get(rule.parameter)
    if ranks is None or ranks < 1 or ranks != int(ranks):
        return run
    extents = tuple(map(int, rule.at(ranks)))
    # `periodic` belongs to the dimensions of the grid of the program. A declared grid may order dimensions differently.
    return replace(run, grid=extents, periodic=run.periodic if run.grid == extents else ())
