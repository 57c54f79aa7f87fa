# SPDX-License-Identifier: Apache-2.0
"""What communication takes undisturbed, known from other call paths of the same operation.

The latency and the transfer of Table I are properties of the machine, so that calls of one operation with equally many
bytes take the same time wherever they are made. A call path that slows down as ranks grow says little of its own
latency, since all that was measured of it is both; those of the same operation that do not slow down say it.
benchmarks/selection_campaign.py
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from ..experiment import Experiment, FloatArray, RegionKind
from ..pmnf.model import Model
from .path_model import PathModel

# Times per call whose ratio changes by less than this part from one configuration to another grow alike: Table I gives
# every coefficient a lower bound, so that what noise hides is a small part of them.
_ALIKE = 0.05
# Messages of one cache line take what a call takes without any: their bytes are alike.
_SHORT = 64.0
_Known = tuple[Model, FloatArray, FloatArray]


def undisturbed(experiment: Experiment, models: Mapping[int, PathModel], slow: Collection[int]) -> dict[int, Model]:
    """Return what the calls of call paths that slow down take without that, as far as others of the operation tell.

    models: of the time of all call paths, without slowdown. slow: those that slow down. A call takes the median of what
    those of the others take that send and receive as much, and that grow alike.
    """
    amounts = [experiment.values.get(name) for name in ("visits", "bytes_sent", "bytes_received")]
    known = [np.nan_to_num(values).max(axis=2, initial=0.0) for values in amounts if values is not None]
    if amounts[0] is None or len(known) == 1:
        return {}
    calls, volume = known[0], np.maximum(known[1], known[-1])
    others: dict[str, list[_Known]] = {}
    for path, entry in models.items():
        if (
            _is_mpi(experiment, path)
            and path not in slow
            and (own := _per_call(experiment, entry, calls, volume, path))
        ):
            others.setdefault(experiment.tree.name(path), []).append(own)
    found = {}
    for path in slow:
        own = _per_call(experiment, models[path], calls, volume, path) if _is_mpi(experiment, path) else None
        alike = others.get(experiment.tree.name(path), [])
        if own is not None and (ratios := [by for other in alike if (by := _ratio(other, own)) is not None]):
            found[path] = replace(own[0], quality=None).scaled(float(np.median(ratios)))
    return found


def _is_mpi(experiment: Experiment, path: int) -> bool:
    return experiment.tree.region_of(path).kind is RegionKind.MPI


def _per_call(
    experiment: Experiment, entry: PathModel, calls: FloatArray, volume: FloatArray, path: int
) -> _Known | None:
    """Return the model of a call path, and its time and bytes per call at the configurations, NaN where it has none.

    calls, volume: (N, C) of all call paths. None if there is no model by Table I.
    """
    if not isinstance(entry.from_effort, Model) or entry.is_from_time_alone:
        return None
    times = entry.from_effort.evaluate(experiment.points)
    made = np.where((calls[path] > 0) & (times > 0), calls[path], np.nan)
    return entry.from_effort, times / made, volume[path] / made


def _ratio(other: _Known, own: _Known) -> float | None:
    """Return what a call takes there in parts of what it takes here; None if they differ, or nothing is known."""
    both = np.isfinite(other[1]) & np.isfinite(own[1])
    ratios = other[1][both] / own[1][both]
    most, least = (np.maximum(by(other[2][both], own[2][both]), _SHORT) for by in (np.maximum, np.minimum))
    if not both.any() or np.ptp(ratios) > _ALIKE * ratios.max() or (most > (1.0 + _ALIKE) * least).any():
        return None
    return float(np.exp(np.log(ratios).mean()))
