# SPDX-License-Identifier: Apache-2.0
"""Write experiments as Extra-P JSON and JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import Experiment, FloatArray

_MOST_NAMED = 3


@dataclass(frozen=True)
class Written:
    """The text of a file. left_out: texts about the parts of the experiment that the file does not contain."""

    text: str
    left_out: tuple[str, ...]


def format_json(experiment: Experiment, inclusive: bool = False) -> Written:
    """Return an experiment as Extra-P JSON, which `extrap --json` opens. inclusive: write inclusive values.

    Extra-P needs the values of a metric of a call path at every point. Therefore points without any value are left out;
    then metrics of call paths that have no value at some remaining point. Zeros are written.

    Raises ModelingError if nothing remains, or if the experiment has no parameters.
    """
    table = _Table(experiment, inclusive)
    measurements: dict[str, dict[str, list[object]]] = {}
    for callpath, metric, values in table.rows():
        entries = [{"point": point, "values": single} for point, single in zip(table.points, values, strict=True)]
        measurements.setdefault(callpath, {})[metric] = [*entries]
    text = json.dumps({"exporter": "quipu", "parameters": list(experiment.parameters), "measurements": measurements})
    return Written(text + "\n", table.left_out())


def format_json_lines(experiment: Experiment, inclusive: bool = False) -> Written:
    """Return an experiment as Extra-P JSON Lines, one measurement per line. Content and errors as in `format_json`."""
    table = _Table(experiment, inclusive)
    lines: list[str] = []
    for callpath, metric, values in table.rows():
        for point, single in zip(table.points, values, strict=True):
            params = dict(zip(experiment.parameters, point, strict=True))
            record = {"params": params, "callpath": callpath, "metric": metric, "value": single}
            lines.append(json.dumps(record if lines else {"exporter": "quipu", **record}))
    return Written("\n".join(lines) + "\n", table.left_out())


class _Table:
    """The content of a file: the pairs of call path and metric that have a value at every written point."""

    def __init__(self, experiment: Experiment, inclusive: bool) -> None:
        if not experiment.parameters:
            raise ModelingError(
                f"experiment {experiment.name} has no parameters, and Extra-P needs one: measure with --param"
            )
        self.experiment = experiment
        self.labels = experiment.tree.unique_labels
        self.values: dict[str, FloatArray] = {
            name: experiment.inclusive(name) if inclusive else experiment.values[name] for name in experiment.values
        }
        measured = np.zeros(experiment.configurations, dtype=bool)
        for values in self.values.values():
            measured |= np.any(~np.isnan(values), axis=(0, 2))
        self.kept = np.flatnonzero(measured)
        self.points = [[_whole(value) for value in point] for point in experiment.points[self.kept].tolist()]
        self.known = {name: np.any(~np.isnan(values[:, self.kept]), axis=2) for name, values in self.values.items()}
        if not any(bool(np.any(known.all(axis=1))) for known in self.known.values()) or not self.points:
            raise ModelingError(
                f"experiment {experiment.name}: Extra-P needs a call path that was measured at every point"
            )

    def rows(self) -> Iterator[tuple[str, str, list[list[float]]]]:
        """Yield call path, metric, and the values of each point and repetition."""
        for path, label in enumerate(self.labels):
            for name, known in self.known.items():
                if known[path].all():
                    values = self.values[name][path, self.kept]
                    yield label, name, [single[~np.isnan(single)].tolist() for single in values]

    def left_out(self) -> tuple[str, ...]:
        """Return texts about measured values that are not written."""
        texts = []
        if dropped := self.experiment.configurations - len(self.points):
            texts.append(f"{dropped} point{'s' if dropped > 1 else ''} where nothing was measured")
        for name, known in self.known.items():
            paths = np.flatnonzero(known.any(axis=1) & ~known.all(axis=1))
            if paths.size:
                named = ", ".join(self.labels[path] for path in paths[:_MOST_NAMED])
                more = f" and {paths.size - _MOST_NAMED} more" if paths.size > _MOST_NAMED else ""
                texts.append(f"{name} of {named}{more}: not measured at every point")
        return tuple(texts)


def _whole(value: float) -> float:
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
