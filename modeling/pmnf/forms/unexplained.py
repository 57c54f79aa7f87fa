# SPDX-License-Identifier: Apache-2.0
"""Counts that no sum of powers and logarithms reproduces, for which functions of another kind are sought."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..criterion.one_process import EXACT_FIT
from ..hypotheses.library import Library
from ..model import Model

_Flags = NDArray[np.bool_]
Fit = Callable[[FloatArray, NDArray[np.int64], _Flags, Library | None, bool], list[Model]]
"""Models of some paths at points (C', m), those of some configurations; the library, None for the usual one; whether
exact ones alone are sought.
"""


def missed(model: Model) -> float:
    """Return what a model misses its counts by, relative."""
    return model.quality.rms_relative if model.quality is not None else np.inf


def unexplained(models: Sequence[Model | None], used: _Flags) -> Iterator[tuple[_Flags, dict[int, Model]]]:
    """Yield the call paths whose `models` do not reproduce their counts, with their models, by where they were used.

    used: (N, C), where a call path was measured and executed.
    """
    found = {path: model for path, model in enumerate(models) if model is not None and missed(model) > EXACT_FIT}
    if not found:
        return
    paths = np.array(list(found))
    patterns, group = np.unique(used[paths], axis=0, return_inverse=True)
    for index, at in enumerate(patterns):
        yield at, {path: found[path] for path in paths[group.reshape(-1) == index].tolist()}
