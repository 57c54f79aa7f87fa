# SPDX-License-Identifier: Apache-2.0
"""Convert data frames and columns of any kind to arrays of numbers and lists of texts; errors name the column."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelingError

Column = NDArray[np.float64] | Sequence[str]
# Types of missing values in pandas, by name, so that pandas need not be installed.
_MISSING = ("NAType", "NaTType")


def numbers_in(data: Any) -> Any:
    """Convert the columns of a pandas data frame, or a pandas series, to floats. Return other data unchanged.

    Raises ValueError with the column and the row (from 0) of a value that is not a finite number: a missing value (NaN,
    NA, None), a text, a date.
    """
    if not hasattr(data, "iloc"):
        return data
    frame = hasattr(data, "columns")
    columns = [data.iloc[:, place] for place in range(len(data.columns))] if frame else [data]
    for name, column in zip(data.columns if frame else [data.name], columns, strict=True):
        for row, value in enumerate(column.tolist()):
            if isinstance(value, str | bytes):
                raise ValueError(
                    f"column {name!r} holds the text {value!r} in row {row}: give codes and name the column in "
                    "categorical, or use fit_columns, which accepts texts"
                )
            if not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise ValueError(f"column {name!r} contains {value!r} in row {row}, not a finite number: leave it out")
    return data.astype(float)


def columns_in(table: Mapping[str, Any], names: Collection[str] | None = None) -> dict[str, Column]:
    """Return the columns of a table or data frame by name: arrays of numbers, or lists of texts.

    A missing value is NaN or "". names: the columns to use; None: all. Raises ModelingError, with column and row (from
    0), for a value that is neither a number nor a text, for numbers and texts in one column, and for equal names.
    """
    if hasattr(table, "columns") and len(set(table.columns)) < len(table.columns):
        names = list(table.columns)
        raise ModelingError(f"several columns are called {next(one for one in names if names.count(one) > 1)!r}")
    return {str(name): _column(str(name), table[name]) for name in table if names is None or str(name) in names}


def _column(name: str, column: Any) -> Column:
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return np.asarray(column, dtype=np.float64)
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    texts = {type(value) for value in values} <= {str}
    if not texts:
        values = [None if _is_missing(value) else value for value in values]
        for row, value in enumerate(values):
            if value is not None and not isinstance(value, str | numbers.Real):
                raise ModelingError(f"column {name!r} holds {value!r} in row {row}: numbers or texts are needed")
        known = [isinstance(value, str) for value in values if value is not None]
        if any(known) and not all(known):
            row = next(row for row, value in enumerate(values) if isinstance(value, str))
            raise ModelingError(f"column {name!r} holds numbers and the text {values[row]!r} in row {row}")
        if not any(known):
            return np.array([math.nan if value is None else float(value) for value in values], dtype=np.float64)
    return [value or "" for value in values]


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in _MISSING or (isinstance(value, float) and math.isnan(value))
