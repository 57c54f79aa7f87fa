# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and functions that read the values of options."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, cast

import typer
from quipu.modeling.errors import ModelingError, UsageError

from ..catalogue import BAD_ASSIGNMENT, NOTHING_FITS

# Settings of click: -h as well as --help prints the help text, which has at most 110 columns.
CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

COMPLETE = "_QUIPU_COMPLETE"
"""Name of the environment variable that a shell sets to request completions."""

OVER_RANKS = ("mean", "max", "sum")
JOBS = "Number of worker processes on this machine, or mpi for all ranks of the MPI job that runs this command."
RANK_COLUMNS = (
    "Up to N ranks the archive contains the values of each rank; for more ranks, statistics over the ranks. "
    "[default: $QUIPU_RANK_COLUMNS, else 256]"
)


def names_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Return a function that completes a word: it returns the names in `known` that begin with the word."""

    def beginning(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return beginning


def names_in(module: str, constant: str) -> Callable[[str], list[str]]:
    """Return a function like `names_of` for the names in a constant of a module, which is imported when needed."""

    def beginning(incomplete: str) -> list[str]:
        return names_of(getattr(importlib.import_module(module), constant))(incomplete)

    return beginning


def _over_ranks(text: str) -> Any:
    return typer.Option("mean", "--over-ranks", metavar="HOW", autocompletion=names_of(OVER_RANKS), help=text)


OVER_RANKS_OPTION = _over_ranks("How ranks combine: mean, max, sum.")
OVER_RANKS_OF_SUMS = _over_ranks("How ranks combine: mean, max, sum. With max, sums over call paths are upper bounds.")


def metric_names(incomplete: str) -> list[str]:
    """Return the completions of the last name in a metric or a list of metrics, such as `ti` or `time,bl`."""
    from quipu.modeling.counters import COUNTERS
    from quipu.modeling.experiment import CRITICAL
    from quipu.modeling.metrics import FURTHER, METRICS

    from ..load.measurements import MADE

    before, comma, begun = incomplete.rpartition(",")
    names = dict.fromkeys([*METRICS, *FURTHER, *COUNTERS, *sorted(MADE)])
    del names[CRITICAL]
    return [f"{before}{comma}{name}" for name in names if name.startswith(begun)]


def parse_assignments(option: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the value of each parameter, from texts such as `p=4` and `p=4,n=1e6`. Whole numbers are int.

    option: name of the option, for messages. Raises UsageError, with the option and the text, if a part is not
    NAME=NUMBER or a name is repeated.
    """
    from quipu.modeling.documents import is_parameter

    values: dict[str, float] = {}
    for text in texts:
        for part in text.split(","):
            name, equals, number = (piece.strip() for piece in part.partition("="))
            if not equals or not number:
                raise UsageError(BAD_ASSIGNMENT(option=option, text=text))
            if not is_parameter(name):
                raise UsageError(f"{option} {text!r}: {name!r} is not a name of letters, digits and _")
            if name in values:
                raise UsageError(f"{option} {text!r}: parameter {name} is given twice")
            values[name] = _number(option, text, number)
    return values


def parse_values(option: str, texts: Sequence[str], parameters: Sequence[str]) -> dict[str, list[float]]:
    """Return the list of values of each parameter, from texts such as `p=1,2,4`, one text per parameter.

    Raises UsageError, with the option and the text, if a text is not NAME=NUMBER,NUMBER,…, if a name is repeated or
    unknown, or if a value is not above 0.
    """
    values: dict[str, list[float]] = {}
    for text in texts:
        name, _, numbers = (piece.strip() for piece in text.partition("="))
        if name not in parameters:
            known = ", ".join(parameters) or "none"
            raise UsageError(
                f"{option} {text!r}: {name!r} is not a parameter; write NAME=NUMBER,… with one of: {known}"
            )
        if name in values:
            raise UsageError(f"{option} {text!r}: parameter {name} is given twice")
        values[name] = [_number(option, text, number.strip()) for number in numbers.split(",")]
        if low := [number for number in values[name] if number <= 0]:
            raise UsageError(f"{option} {text!r}: {low[0]:g} must be above 0")
    return values


def _number(option: str, text: str, number: str) -> float:
    from quipu.modeling.documents import number_of

    if (value := number_of(number)) is None:
        raise UsageError(f"{option} {text!r}: {number!r} is not a finite number; write 4, 0.5 or 1e6, up to 1e300")
    return value


def point_of(
    option: str,
    texts: Sequence[str],
    parameters: Sequence[str],
    partial: bool = False,
    with_zero: Sequence[str] = (),
    ranks: Collection[str] = (),
) -> dict[str, float]:
    """Return a point with a value for each of `parameters`, from texts such as `p=4,n=1e6`.

    - option: name of the option, for messages.
    - partial: whether values may be missing.
    - with_zero: parameters that may be 0. All other values must be above 0, because models contain logarithms and
      negative powers.
    - ranks: parameters that are numbers of ranks, and must be whole numbers.

    Raises UsageError for a wrong text or value.
    """
    from ..load.point import checked_point

    return checked_point(option, parse_assignments(option, texts), parameters, partial, with_zero, ranks)


def over_ranks_of(text: str) -> Literal["mean", "max", "sum"]:
    """Return the value of --over-ranks. Raises UsageError if it is not one of OVER_RANKS."""
    if text not in OVER_RANKS:
        raise UsageError(f"--over-ranks {text!r}: choose one of {', '.join(OVER_RANKS)}")
    return cast(Literal["mean", "max", "sum"], text)


def split_names(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the names in the values of a repeated option, without duplicates. Commas separate names in a value."""
    return tuple(dict.fromkeys(name.strip() for text in texts for name in text.split(",") if name.strip()))


def no_match_error(path: str) -> ModelingError:
    """Return the error for a pattern of --path that matches no call path."""
    return ModelingError(NOTHING_FITS(pattern=path))


def example_first(text: str) -> str:
    """Return the help text of a command with the paragraph of examples before all others."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(sorted(paragraphs, key=lambda paragraph: not paragraph.lstrip().startswith("\b\nExample:")))
