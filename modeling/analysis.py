"""All models of one experiment: per metric, exclusive and inclusive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .by_visits import by_visits
from .domain import possible_grids
from .errors import ModelingError
from .experiment import CallTree, Experiment, Metric
from .pmnf.changes import fit_models
from .pmnf.data.preparation import ranges
from .pmnf.model import Model, add
from .pmnf.modeler import DEFAULT, NoModel, Options
from .priors.choices import time_priors
from .priors.dedicated import dedicated_times
from .priors.effort_time import model_time
from .priors.path_model import PathModel
from .progress import steps

MEASURED, SUM = "measured", "sum"


@dataclass(frozen=True, eq=False)
class Analysis:
    """The models of an experiment.

    exclusive: per metric one entry per call path, as in `tree`. ranges: per parameter the measured range.
    oversubscribed: the measured points with more ranks than processors.
    """

    name: str
    parameters: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]
    tree: CallTree
    metrics: dict[str, Metric]
    exclusive: dict[str, tuple[PathModel, ...]]
    over_ranks: str = "mean"
    notes: tuple[str, ...] = ()
    oversubscribed: tuple[tuple[float, ...], ...] = ()

    def models(self, metric: str, inclusive: bool = False) -> tuple[PathModel, ...]:
        """Return the models of a metric for all call paths; ModelingError that lists the metrics if unknown."""
        if metric not in self.exclusive:
            known = ", ".join(sorted(self.exclusive)) or "none"
            raise ModelingError(f"{self.name}: no models of metric {metric!r}; there are models of: {known}")
        return self._inclusive[metric] if inclusive else self.exclusive[metric]

    @cached_property
    def from_effort(self) -> Analysis:
        """The same without what time has beyond effort: what it takes if nothing waits or slows down."""
        time = tuple(replace(entry, model=entry.from_effort, lower=None) for entry in self.exclusive.get("time", ()))
        return replace(self, exclusive={**self.exclusive, "time": time})

    @cached_property
    def _inclusive(self) -> dict[str, tuple[PathModel, ...]]:
        return {name: self._sum_up(name) for name in self.exclusive}

    def _sum_up(self, metric: str) -> tuple[PathModel, ...]:
        exclusive = self.exclusive[metric]
        if self.metrics[metric].over_locations == "max":
            return exclusive
        result = []
        for path in range(len(self.tree)):
            below = self.subtree(path)
            parts = [model for number in below if isinstance(model := exclusive[number].model, Model)]
            if len(below) == 1:
                result.append(exclusive[path])
            elif not parts:
                result.append(PathModel(NoModel("no call path below has a model"), SUM))
            else:
                total = add(parts)
                missing = len(below) - len(parts)
                notes = (f"{missing} of {len(below)} call paths have no model",) if missing else ()
                model = Model(
                    self.parameters, total.constant, total.terms, None, self.ranges, total.covariance, (), notes
                )
                shared = any(exclusive[number].oversubscribed for number in below)
                result.append(PathModel(model, SUM, oversubscribed=shared))
        return tuple(result)

    def subtree(self, path: int) -> tuple[int, ...]:
        """Return the call path and all below it, without the start and the end of MPI unless it is part of them."""
        found, stack, outside = [], [path], self.tree.start_and_end
        while stack:
            node = stack.pop()
            found.append(node)
            stack.extend(child for child in self.tree.children[node] if outside[child] == outside[path])
        return tuple(sorted(found))


def analyze(experiment: Experiment, options: Options = DEFAULT) -> Analysis:
    """Model every metric of an experiment: effort exactly, time under the priors of effort, the rest as cost.

    Other selectors than "evidence" are for comparison: they model time from time alone.
    Raises ModelingError if there is nothing to model.
    """
    if not len(experiment.tree) or not experiment.configurations:
        raise ModelingError(f"experiment {experiment.name} is empty: it has no call paths or no configurations")
    if not options.grids:
        options = replace(options, grids=possible_grids(experiment, options.library), ranked=True)
    with_priors = options.selector == "evidence" and "time" in experiment.values
    alone = [name for name in experiment.metrics if name in experiment.values and not (with_priors and name == "time")]
    models = fit_metrics(experiment, alone, options)
    exclusive = {name: _measured(experiment, name, found) for name, found in models.items()}
    if with_priors:
        exclusive["time"] = model_time(experiment, time_priors(experiment, models, options), options)
    return Analysis(
        experiment.name,
        experiment.parameters,
        ranges(experiment.points),
        experiment.tree,
        {name: experiment.metrics[name] for name in exclusive},
        exclusive,
        experiment.over_ranks,
        experiment.notes,
        tuple(tuple(point) for point in experiment.points[~experiment.dedicated].tolist()),
    )


def fit_metrics(
    experiment: Experiment, metrics: Iterable[str], options: Options = DEFAULT
) -> dict[str, list[Model | NoModel]]:
    """Return the models that the exclusive values of each of these metrics make, one per call path.

    Costs make them alone, counts together with visits, where these are among the metrics.
    Costs of oversubscribed configurations are left out where the others are enough.
    """
    points, parameters, executed = experiment.points, experiment.parameters, experiment.executed
    result = {}
    for name in steps("modeling metrics", list(metrics)):
        metric = experiment.metrics[name]
        values = experiment.values[name] if metric.is_effort else dedicated_times(experiment, name)[0]
        result[name] = fit_models(points, values, metric, parameters, options, executed)
    return by_visits(experiment, result, options)


def _measured(experiment: Experiment, metric: str, models: Sequence[Model | NoModel]) -> tuple[PathModel, ...]:
    """Return what `fit_metrics` made of a metric as models of call paths."""
    if experiment.metrics[metric].is_effort:
        return tuple(PathModel(model, MEASURED) for model in models)
    flags = dedicated_times(experiment, metric)[1].tolist()
    return tuple(
        PathModel(model, MEASURED, oversubscribed=flag and isinstance(model, Model))
        for model, flag in zip(models, flags, strict=True)
    )
