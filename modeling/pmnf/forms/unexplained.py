# SPDX-License-Identifier: Apache-2.0
"""Find counts that no sum of powers and logarithms reproduces, for a search of other functions."""

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
"""Models of some paths at points (C', m) of some configurations.

The library, None for the default; whether only exact models are searched.
"""


def missed(model: Model) -> float:
    """Return the relative residual of a model."""
    return model.quality.rms_relative if model.quality is not None else np.inf


def unexplained(models: Sequence[Model | None], used: _Flags) -> Iterator[tuple[_Flags, dict[int, Model]]]:
    """Yield the call paths whose counts `models` do not reproduce, with their models, grouped by where they were used.

    used: (N, C), where a call path was measured and executed.
    """
    found = {path: model for path, model in enumerate(models) if model is not None and missed(model) > EXACT_FIT}
    if not found:
        return
    paths = np.array(list(found))
    patterns, group = np.unique(used[paths], axis=0, return_inverse=True)
    for index, at in enumerate(patterns):
        yield at, {path: found[path] for path in paths[group.reshape(-1) == index].tolist()}
