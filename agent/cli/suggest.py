# SPDX-License-Identifier: Apache-2.0
"""`quipu suggest`: suggest the next measurements within a budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import names_in, parse_values, point_of
from .output import layout, say, show, show_json

if TYPE_CHECKING:
    from quipu.modeling.design.program import Budget, Search


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment with the runs until now."),
    budget: str = typer.Option(
        ...,
        "--budget",
        metavar="HOURS|SHARE%",
        help="Core hours (2.5), or a share of the cost of all runs at all points (10%); measured runs count, too.",
    ),
    target: list[str] = typer.Option(
        [],
        "--target",
        metavar="NAME=NUMBER,...",
        help="The point to predict. [default: the target of the campaign]",
    ),
    values: list[str] = typer.Option(
        [],
        "--values",
        metavar="NAME=NUMBER,...",
        help="Values that a parameter can take. [default: the measured values]",
    ),
    constraints: list[str] = typer.Option(
        [],
        "--constraint",
        metavar="EXPRESSION",
        help="A condition that points must fulfil, such as 'is_cube(p) and n % 10 == 0'.",
    ),
    strategy: str = typer.Option(
        "posterior",
        "--strategy",
        metavar="NAME",
        autocompletion=names_in("quipu.modeling.design", "STRATEGIES"),
        help="The strategy, see above.",
    ),
    batch: int = typer.Option(4, "--batch", min=1, metavar="N", help="Number of runs to suggest."),
    repetitions: int | None = typer.Option(
        None,
        "--repetitions",
        min=1,
        metavar="N",
        help="Largest number of runs of one point. Default: 4, or 1 for simulations by effort.",
    ),
    ranks: str = typer.Option("", "--ranks", metavar="NAME", help="The parameter that is the number of ranks, or 1."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Suggest the runs that improve the prediction at a target, within a budget of core hours.

    The default strategy, posterior, selects the runs with the largest reduction of the variance of the predicted time
    per core hour. The variance contains uncertain coefficients and the choice between similarly probable models. The
    other strategies are cpf, cpf2 (cheapest points first with 4 or 2 repetitions), gpr, hybrid, bayes (Gaussian
    processes), single, random, grid and full.

    If several formulas fit the counts of all runs and differ at the target, a note names the run that shows which one
    holds. This run only counts (quipu run --counts), so it can use fewer processors than ranks.

    \b
    Example: quipu suggest heat --budget 10% --target p=1024,n=6000 --values p=1,2,4,8,16 --values n=100,200,400,800
    """
    from quipu.modeling.counts.predictions import count_models
    from quipu.modeling.design import STRATEGIES
    from quipu.modeling.design.program import Budget, all_measured, search
    from quipu.modeling.design.space import search_space
    from quipu.modeling.errors import UsageError
    from quipu.modeling.printable import counted
    from quipu.modeling.priors.rank_parameters import rank_parameters
    from quipu.report.deciding_text import COUNTS, counting_json, deciding_notes
    from quipu.report.json_views import search_json
    from quipu.report.model_views import oversubscription_notes
    from quipu.report.terminal import head, tables

    from ..load.kept_models import analyze_once
    from ..load.measurements import load, or_target

    if strategy not in STRATEGIES:
        raise UsageError(f"--strategy {strategy!r}: choose one of {', '.join(STRATEGIES)}")
    with _as_options():
        limit = Budget.parse(budget)
    everything = load(experiment)
    measured = everything.of_time
    target = or_target(target, experiment)
    point = point_of("--target", target, measured.parameters, ranks={ranks} if ranks else rank_parameters(measured))
    given = parse_values("--values", values, measured.parameters)
    columns = {
        name: given.get(name) or measured.points[:, number].tolist() for number, name in enumerate(measured.parameters)
    }
    with _as_options():
        candidates = search_space(columns, constraints)
    found, notes = all_measured(measured, candidates, point, ranks or None, repetitions), list(measured.notes)
    if found is None:
        analysis = analyze_once(measured)
        chooser = STRATEGIES[strategy]()
        found = search(measured, analysis, candidates, point, chooser, limit, batch, ranks or None, repetitions)
        notes = [*oversubscription_notes(analysis), *notes]
    counts = count_models(everything)
    if as_json:
        show_json(search_json(measured.name, found, limit, counting_json(counts, point)))
        return
    notes = [*deciding_notes(counts, point, COUNTS), *notes]
    room = layout()
    table = [tables.search_table(found, room)] if found.suggestions else []
    show([head(measured.name, _facts(measured.quality, found, limit, point), notes, room), *table])
    if (found.state.counts >= found.state.repetitions).all():
        name = next((one for at, one in enumerate(columns) if at != found.state.ranks), measured.parameters[0])
        more = ",".join(f"{value:.15g}" for value in _more_values(columns[name]))
        runs = counted(found.state.repetitions, "run", "runs")
        say(f"all points of the search space have their {runs}: give further values, such as --values {name}={more}")
    elif not found.suggestions:
        _say_budget(found, limit)


def _facts(quality: str, found: Search, limit: Budget, point: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the lines of the head: target, search space, budget, and the cost of finished and suggested runs."""
    from quipu.modeling.printable import counted
    from quipu.report.text import core_hours, number, percent, quality_fact

    allowed = limit.hours(found.whole)
    runs = counted(found.state.repetitions, "run", "runs")
    known = int(found.state.counts.astype(bool).sum())
    cost = core_hours(sum(one.cost for one in found.suggestions))
    shown = [
        *quality_fact(quality),
        ("target", ", ".join(f"{name}={number(value)}" for name, value in point.items())),
        ("search space", f"{counted(len(found.state.candidates), 'point', 'points')}, {known} of them measured"),
        ("full cost", f"{core_hours(found.whole)} for {runs} of each point"),
        ("budget", f"{core_hours(allowed)}, {percent(allowed / found.whole)} of the full cost"),
        ("used so far", f"{core_hours(found.spent)}, {percent(found.spent / allowed)} of the budget"),
    ]
    if found.suggestions:
        shown.append(("suggested", f"{counted(len(found.suggestions), 'run', 'runs')}, {cost}"))
    return shown


@contextmanager
def _as_options() -> Iterator[None]:
    """Convert an ArgumentError in this context to a UsageError whose message begins with the name of the option."""
    from quipu.modeling.errors import ArgumentError, UsageError

    try:
        yield
    except ArgumentError as error:
        raise UsageError(f"--{error}") from None


def _say_budget(found: Search, limit: Budget) -> None:
    """Print why no further run fits the budget, and the smallest budget that allows a further run."""
    from quipu.report.text import core_hours

    used, allowed = core_hours(found.spent), core_hours(limit.hours(found.whole))
    if found.spent < limit.hours(found.whole):
        text = f"no further run fits the budget of {allowed}; the measured runs took {used}"
    else:
        text = f"the budget of {allowed} is used up: the measured runs took {used}"
    if not math.isnan(found.needed):
        text += f"; for another run give --budget {limit.text_of(found.needed, found.whole)} or more"
    say(text)


def _more_values(known: Sequence[float]) -> list[float]:
    """Return the values of a parameter, ascending, and one further value.

    The further value continues the ratio of the last two values if this ratio is whole, otherwise their difference. It
    is twice the value if there is only one.
    """
    values = sorted(set(known))
    last = values[-1]
    ratio = last / values[-2] if len(values) > 1 else 2.0
    return [*values, last * ratio if ratio == int(ratio) else 2.0 * last - values[-2]]
