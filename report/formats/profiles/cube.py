# SPDX-License-Identifier: Apache-2.0
"""Read Cube profiles of Score-P and Scalasca as an experiment, with pycubexr."""

from __future__ import annotations

import re
import struct
import tarfile
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import ParseError

import numpy as np
from quipu.modeling.errors import EnvironmentProblem, FormatError
from quipu.modeling.experiment import Experiment, IntArray, Metric, Region, RegionKind
from quipu.modeling.limits import reading
from quipu.modeling.metrics import METRICS

from ...views import Over
from .cube_members import count_members
from .folders import find_profiles
from .stacked import Stacked

PROGRAM = "program"
"""Name of the region of the whole program. Score-P calls it like the executable, which may differ between runs."""
_UNITS = {"sec": "s", "occ": "1", "#": "1", "": "1", "bytes": "B"}
_PLAIN = re.compile(r"(MAX)?DOUBLE|FLOAT|U?INT(8|16|32|64)?|((UN)?SIGNED )?(SHORT )?INT(EGER)?")
_KINDS = {"mpi": RegionKind.MPI, "openmp": RegionKind.OPENMP, "user": RegionKind.USER, "python": RegionKind.PYTHON}
# Exceptions of pycubexr and the standard library for damaged files; and of pycubexr for damaged content, for which it
# often has only assertions.
_DAMAGED_FILE = (tarfile.TarError, zlib.error, struct.error, ParseError, OSError, EOFError)
_DAMAGED_CONTENT = (LookupError, ValueError, TypeError, AttributeError, AssertionError, ArithmeticError, RecursionError)


def read_cube(source: Path, over_ranks: Over = "mean") -> Experiment:
    """Return Cube profiles as an experiment.

    source: a folder that contains a folder for each run, named as for Extra-P (see `folders`); or one profile; or the
    folder of one profile. If the name of the folder of one profile has no parameters, the number of its ranks is the
    parameter p.

    Values are exclusive. The values of the threads of a rank are added (metrics that are maxima: the maximum). Then the
    ranks are combined by `over_ranks`. A call path that is missing in a profile has the value 0 there, a missing metric
    NaN.

    Raises EnvironmentProblem without pycubexr, FormatError for invalid names and damaged profiles.
    """
    try:
        import pycubexr  # noqa: F401 (imported here so that its absence is reported before errors of the files)
    except ImportError as error:
        raise EnvironmentProblem(
            f"{source}: reading Cube profiles needs pycubexr: pip install pycubexr (or: pip install 'quipu[cube]')"
        ) from error
    reader = _Reader(over_ranks)
    profiles = []
    for profile in find_profiles(source):
        ranks = reader.read(profile.path)
        profiles.append(replace(profile, parameters=profile.parameters or {"p": float(ranks)}))
    size = sum(profile.path.stat().st_size for profile in profiles)
    return reader.experiment(source, profiles, size)


class _Reader(Stacked):
    """Reads several profiles, one after the other."""

    def read(self, path: Path) -> int:
        """Add one profile, and return its number of ranks.

        Raises FormatError if the profile is damaged, or pycubexr does not support it.
        """
        from pycubexr import CubexParser
        from pycubexr.utils.exceptions import CorruptIndexError

        try:
            with reading(path, path.stat().st_size) as cost, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # CubeWriter 4.8 writes wrong checksums
                count_members(path, cost)
                with CubexParser(str(path)) as parser:
                    ranks = _rank_of_location(parser)
                    self.values.append(dict(self._metrics_of(parser, ranks)))
                    return int(ranks.max(initial=-1)) + 1
        except (*_DAMAGED_FILE, *_DAMAGED_CONTENT, CorruptIndexError) as error:
            reason = f": {error}" if str(error) else ""
            raise FormatError(path, f"cannot be read as a Cube profile{reason}") from error

    def _metrics_of(self, parser: Any, ranks: IntArray) -> Iterator[tuple[str, dict[int, float]]]:
        """Yield each metric, and its values by index of the call path. ranks: result of `_rank_of_location`."""
        from pycubexr.utils.exceptions import MissingMetricError

        nodes = {cnode.id: self._node(cnode) for cnode in _parents_first(parser.get_root_cnodes())}
        for cube_metric in parser.get_metrics():
            if "MIN" in cube_metric.data_type.upper():
                self.notes[f"{cube_metric.name} is left out: minima of call paths do not add up"] = None
                continue
            if not _PLAIN.fullmatch(cube_metric.data_type.upper()):
                self.notes[f"{cube_metric.name} is left out: its values are not plain numbers"] = None
                continue
            try:
                found = parser.get_metric_values(cube_metric, cache=False)
                metric = _metric(cube_metric)
                values: dict[int, float] = {}
                for cnode_id in found.cnode_indices:
                    single = found.cnode_values(parser.get_cnode(cnode_id), convert_to_exclusive=True)
                    value = self.combined(np.asarray(single.astype(float)), ranks, metric)
                    node = nodes[cnode_id]
                    values[node] = values[node] + value if node in values else value
            except MissingMetricError:
                continue
            self.metrics.setdefault(metric.name, metric)
            yield metric.name, values

    def _node(self, cnode: Any) -> int:
        """Return the index of the call path of a node of Cube, and store the index in the node."""
        parent = -1 if cnode.parent is None else int(cnode.parent.quipu_node)
        region = cnode.region
        # In Score-P, the region of the whole program has the executable as its name and the command line as its linker
        # name. Both may differ between runs of one program.
        made_up = (region.role or "").lower() == "artificial"
        if made_up:
            shown = PROGRAM if parent < 0 else region.name or "unnamed"
            node = cnode.quipu_node = self.tree.node(parent, Region(f"<{shown}>", shown))
            return node
        name = region.mangled_name or region.name or "<unnamed>"
        kind = _KINDS.get((region.paradigm or "").lower(), RegionKind.FUNCTION)
        place = (region.mod or "", max(0, int(region.begin)))
        node = cnode.quipu_node = self.tree.node(parent, Region(name, region.name or name, kind, *place))
        return node


def _metric(cube_metric: Any) -> Metric:
    name, unit = str(cube_metric.name), str(cube_metric.units or "")
    over: Literal["sum", "max"] = "max" if "MAX" in cube_metric.data_type.upper() else "sum"
    return METRICS.get(name) or Metric(name, _UNITS.get(unit, unit), "cost", over, str(cube_metric.description or ""))


def _parents_first(roots: list[Any]) -> Iterator[Any]:
    stack = list(reversed(roots))
    while stack:
        cnode = stack.pop()
        yield cnode
        stack.extend(reversed(cnode.get_children()))


def _rank_of_location(parser: Any) -> IntArray:
    """Return the rank (process) of each location (thread), in the order of the values, shape (locations,)."""
    # get_locations() of pycubexr returns the locations without their processes, in the same order.
    groups = parser._anchor_result.system_tree_nodes[0].all_location_groups()
    sizes = [len(group.all_locations()) for group in groups]
    ranks = np.repeat(np.arange(len(sizes)), sizes)
    return np.unique(ranks, return_inverse=True)[1].astype(np.int64)
