# SPDX-License-Identifier: Apache-2.0
"""Fit tensor models to named columns of a table: texts become numeric codes, invalid rows are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelingError
from ..experiment import FloatArray
from ..printable import counted
from .frames import Column, columns_in
from .model import FEWEST_ROWS, TensorModel
from .modes import LARGEST, too_large

MOST_LEVELS = 1000
"""A column of texts with more distinct values names the rows. It is rejected as a parameter."""
MOST_CATEGORIES = 200
NOTE_ROWS, NOTE_VALUES, NOTE_RANGE, NOTE_RATIO = 200, 50, 0.2, 1.2
"""For the note that numbers may be names of categories (`_jumping`): number of rows over which log times are averaged,
largest number of values of the parameter, least range of the mean log time, and least von Neumann ratio."""
UNKNOWN = -1.0
"""Code of an unmeasured category."""


@dataclass(frozen=True)
class ColumnModel:
    """A tensor model of named parameters.

    levels: for each parameter with texts, the texts in the order of their codes 0, 1, … target: name of the predicted
    column.
    """

    parameters: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]]
    target: str
    model: TensorModel

    def matrix(self, columns: Mapping[str, Any]) -> FloatArray:
        """Return the rows of a table as a matrix (N, d) for the model.

        A missing value is NaN, a text that was not measured is `UNKNOWN`. Raises ModelingError for a parameter without
        a column, or for a column of texts if the parameter is numeric.
        """
        columns = columns_in(columns, self.parameters)
        if missing := [name for name in self.parameters if name not in columns]:
            raise ModelingError(f"no column {', '.join(missing)}: the model needs {', '.join(self.parameters)}")
        return np.column_stack([_coded(name, columns[name], self.levels.get(name)) for name in self.parameters])

    def measured(self, columns: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
        """Return the rows (N, d) and times (N,) of a table that have all parameters and a positive time.

        Raises ModelingError for a missing column, for a column of texts if the parameter is numeric, and for fewer than
        two such rows.
        """
        columns = columns_in(columns, (*self.parameters, self.target))
        if self.target not in columns:
            raise ModelingError(f"no column {self.target!r}, which the model predicts; there are: {', '.join(columns)}")
        x, times = self.matrix(columns), _coded(self.target, columns[self.target], None)
        good, _ = _usable(x, times, self.parameters, self.target)
        return x[good], times[good]

    @property
    def categorical(self) -> tuple[str, ...]:
        """Return the names of the parameters without an order."""
        kinds = {mode.parameters[0]: mode.kind for mode in self.model.modes_}
        return tuple(name for at, name in enumerate(self.parameters) if kinds.get(at) == "categorical")


def fit_columns(
    columns: Mapping[str, Any],
    target: str,
    parameters: Sequence[str] = (),
    categorical: Sequence[str] = (),
    spacing: Mapping[str, str] | None = None,
    place: Callable[[int], str] = "row {}".format,
    **options: object,
) -> tuple[ColumnModel, FloatArray, FloatArray, tuple[str, ...]]:
    """Fit a model of a column of a table; return the model, the used rows (N, d) and times (N,), and notes.

    - columns: arrays or lists by name, or a data frame.
    - target: the column to model, positive times.
    - parameters: columns to use; default: all except the target.
    - categorical: columns whose values have no order; columns of texts are always categorical.
    - spacing: "uniform" or "geometric" by parameter; otherwise the data decide.
    - place: returns the name of a row in notes and errors from its index.
    - options: further arguments of `TensorModel`.

    Rows with missing values, or with a time that is not positive and finite, are left out with a note. Raises
    ModelingError for data that cannot be modeled.
    """
    names = tuple(dict.fromkeys(parameters)) or tuple(name for name in map(str, columns) if name != target)
    spacing = spacing or {}
    _require_named(columns, (target, *names, *categorical, *spacing))
    columns = columns_in(columns, (target, *names))
    if target in names:
        raise ModelingError(f"column {target!r} is the target and cannot be a parameter, too")
    if not names:
        raise ModelingError(f"the only column is the target {target!r}: a model needs parameters")
    if outside := [name for name in (*categorical, *spacing) if name not in names]:
        raise ModelingError(f"column {outside[0]!r} is not among the parameters: {', '.join(names)}")
    times = _coded(target, columns[target], None, place)
    levels = {name: _levels(name, columns[name]) for name in names if not isinstance(columns[name], np.ndarray)}
    x = np.column_stack([_coded(name, columns[name], levels.get(name)) for name in names])
    good, notes = _usable(x, times, names, target, place)
    x, times = x[good], times[good]
    if wrong := too_large(x):
        raise ModelingError(
            f"column {names[wrong[0]]!r} holds values beyond {LARGEST:g}, whose squares overflow: use another unit"
        )
    unordered = [at for at, name in enumerate(names) if name in levels or name in categorical]
    for at in unordered:
        if (count := len(np.unique(x[:, at]))) > MOST_CATEGORIES:
            raise ModelingError(f"categorical column {names[at]!r} has {count} values: at most {MOST_CATEGORIES}")
    places = [spacing.get(name, "auto") for name in names]
    for name, grid in spacing.items():
        if names.index(name) in unordered:
            raise ModelingError(f"column {name!r} is categorical, so without an order: it can have no {grid} spacing")
        if grid == "geometric" and x[:, names.index(name)].min() <= 0:
            raise ModelingError(f"column {name!r} has values that are not positive: no geometric spacing")
    model = TensorModel(categorical=tuple(unordered), spacing=places, **options)  # type: ignore[arg-type]
    try:
        model.fit(x, times)
    except ValueError as error:
        raise ModelingError(str(error)) from error
    found = ColumnModel(names, levels, target, model)
    return found, x, times, (*notes, *_few_rows(x), *(_unordered_note(name) for name in _jumping(found, x)))


def _require_named(columns: Mapping[str, Any], names: Sequence[str]) -> None:
    known = [str(name) for name in columns]
    for name in names:
        if name not in known:
            raise ModelingError(f"no column {name!r}; there are: {', '.join(known)}")
        if not name.strip():
            raise ModelingError(f"a column has no name ({name!r}): give it one, or leave it out of the parameters")


def hidden_pairs(model: ColumnModel, x: FloatArray) -> list[list[str]]:
    """Return for each row x (N, d) the pairs "a*b" of parameters whose combination of values was not measured.

    Rows with missing values have none.
    """
    pairs = [f"{model.parameters[one]}*{model.parameters[other]}" for one, other in model.model.support_.pairs]
    result: list[list[str]] = [[] for _ in x]
    good = np.flatnonzero(np.isfinite(x).all(axis=1))
    if len(good):
        for row, pair in np.argwhere(model.model.hidden(x[good])):
            result[good[row]].append(pairs[pair])
    return result


def _jumping(model: ColumnModel, x: FloatArray) -> list[str]:
    """Return the numeric parameters whose values may be names, because time jumps between neighbouring values.

    Such a parameter has few values, all whole numbers. The criterion is the ratio of von Neumann ("Distribution of the
    ratio of the mean square successive difference to the variance", 1941) of the mean log times. It is near 0 for a
    trend, and on average 2 for values in random order.
    """
    result = []
    rows = x[:NOTE_ROWS]
    for at, name in enumerate(model.parameters):
        values = np.unique(x[:, at])
        if name in model.categorical or not model.model.whole_[at] or not 5 <= len(values) <= NOTE_VALUES:
            continue
        points = np.repeat(rows, len(values), axis=0)
        points[:, at] = np.tile(values, len(rows))
        logs = np.log(model.model.predict(points)).reshape(len(rows), len(values)).mean(axis=0)
        if np.ptp(logs) > NOTE_RANGE and np.sum(np.diff(logs) ** 2) > np.sum((logs - logs.mean()) ** 2) * NOTE_RATIO:
            result.append(name)
    return result


def _unordered_note(name: str) -> str:
    return (
        f"{name} has few values, and time jumps between neighbours: if its numbers are names, use --categorical {name}"
    )


def _usable(
    x: FloatArray,
    times: FloatArray,
    names: Sequence[str],
    target: str,
    place: Callable[[int], str] = "row {}".format,
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    complete = np.isfinite(x).all(axis=1)
    positive = np.isfinite(times) & (times > 0)
    notes = []
    if count := int(np.sum(~complete)):
        row = int(np.argmin(complete))
        worst = names[int(np.argmin(np.isfinite(x[row])))]
        left_out = f"{counted(count, 'row is', 'rows are')} left out"
        notes.append(f"{left_out}: no number in some parameter (such as {worst} in {place(row)})")
    if count := int(np.sum(complete & ~positive)):
        row = int(np.argmax(complete & ~positive))
        example = f"{place(row)} has " + ("none" if np.isnan(times[row]) else f"{times[row]:g}")
        left_out = f"{counted(count, 'row is', 'rows are')} left out"
        notes.append(f"{left_out}: {target} is not positive and finite ({example})")
    good = complete & positive
    if np.sum(good) < 2:
        raise ModelingError(
            f"{int(np.sum(good))} of {len(x)} rows have all parameters and a positive {target}: a model needs 2"
        )
    if constant := [name for at, name in enumerate(names) if np.ptp(x[good, at]) == 0]:
        notes.append(f"constant, so without influence: {', '.join(constant)}")
    return good, tuple(notes)


def _few_rows(x: FloatArray) -> list[str]:
    """Return notes if there are too few rows x (N, d).

    A log-additive model needs at least one row for its constant and one for the slope of each parameter that varies.
    """
    notes, varying = [], int(np.sum(np.ptp(x, axis=0) > 0))
    if len(x) < FEWEST_ROWS:
        notes.append(
            f"{len(x)} rows are too few to estimate the error and the width of intervals: {FEWEST_ROWS} are needed"
        )
    if len(x) <= varying:
        notes.append(
            f"{len(x)} rows cannot separate the effects of {varying} parameters: at least {varying + 1} are needed"
        )
    return notes


def _levels(name: str, column: Column) -> tuple[str, ...]:
    found = tuple(sorted({str(value) for value in column if value}))
    if len(found) > MOST_LEVELS:
        raise ModelingError(
            f"column {name!r} holds {len(found)} different texts: leave it out, or give numbers if it is a quantity"
        )
    return found


def _coded(
    name: str, column: Column, levels: Sequence[str] | None, place: Callable[[int], str] = "row {}".format
) -> FloatArray:
    """Return a column as numbers (N,); NaN for a missing value.

    With `levels`, a text is replaced by its index in them, or by `UNKNOWN` if it is not one of them. Raises
    ModelingError for texts without `levels`.
    """
    if levels is not None:
        codes = {level: float(code) for code, level in enumerate(levels)}
        texts = [_text(value) for value in column] if isinstance(column, np.ndarray) else column
        return np.array([codes.get(value, UNKNOWN) if value else np.nan for value in texts], dtype=np.float64)
    if isinstance(column, np.ndarray):
        return np.asarray(column, dtype=np.float64)
    wrong = next(((row, value) for row, value in enumerate(column) if value and not _is_number(value)), None)
    example = f" such as {wrong[1]!r} in {place(wrong[0])}" if wrong else ""
    raise ModelingError(f"column {name!r} must hold numbers, not texts{example}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _text(value: float) -> str:
    return "" if np.isnan(value) else f"{value:g}"


def parameter_number(model: ColumnModel, name: str) -> int:
    """Return the index of a parameter. Raises ModelingError, which lists the parameters, if it does not exist."""
    if name not in model.parameters:
        raise ModelingError(f"no parameter {name!r} in this model; it has: {', '.join(model.parameters)}")
    return model.parameters.index(name)


def measured_values(model: ColumnModel, name: str) -> FloatArray:
    """Return representative values of a parameter, ascending: all measured values if they are few, otherwise knots.

    Raises ModelingError if the model has no such parameter.
    """
    number = parameter_number(model, name)
    found = model.model.values_[number]
    return found if len(found) else values_of_knots(model.model, number)


def values_of_knots(fitted: TensorModel, number: int) -> FloatArray:
    """Return the knots of parameter number `number` in units of the parameter, limited to the measured range.

    Rounding errors of logarithms are removed. A constant parameter has its only value.
    """
    low, high = fitted.low_[number], fitted.high_[number]
    for mode in fitted.modes_:
        if mode.parameters == (number,):
            if mode.kind == "categorical":
                return mode.knots
            values = np.exp(mode.knots) if mode.logarithmic else mode.knots
            shown = np.array([float(f"{value:.12g}") for value in values])  # exp(log(8)) is not 8
            return np.unique(np.clip(np.round(shown) if fitted.whole_[number] else shown, low, high))
    return np.array([low])


__all__ = [
    "Column",
    "ColumnModel",
    "fit_columns",
    "hidden_pairs",
    "measured_values",
    "parameter_number",
    "values_of_knots",
]
