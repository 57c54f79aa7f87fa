# SPDX-License-Identifier: Apache-2.0
"""`quipu check`: compare the effort of a program with expectations and with a baseline."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError

from ..load.measurements import load_side
from .options import OVER_RANKS_OPTION, over_ranks_of
from .output import json_text, layout, say, show, show_json, write_own

if TYPE_CHECKING:
    from quipu.report.check_views import CheckResult
    from quipu.report.views import Over

    from ..compare.expectations_file import ExpectationsFile
    from ..compare.sides import Side

NOT_HELD = 3
"""Exit code if an expectation does not hold (1: bad input, 2: wrong usage)."""

# Patterns that show that `quipu check` wrote a file. Such files may be overwritten.
_JUNIT = re.compile(r'<testsuites name="quipu check"')
_SARIF = re.compile(r'"driver": \{\s*"name": "quipu"')


def command(
    *,
    expectations: Path = typer.Argument(..., metavar="FILE", help="The expectations: a TOML file."),
    experiment: Path | None = typer.Argument(
        None, metavar="[EXPERIMENT]", help="The experiment to check. Default: the one that FILE names."
    ),
    baseline: Path | None = typer.Option(
        None,
        "--baseline",
        metavar="FILE",
        help="Compare with this baseline or experiment instead of the one that FILE names.",
    ),
    update_baseline: bool = typer.Option(
        False, "--update-baseline", help="Write the effort of EXPERIMENT to the baseline that FILE names, and exit."
    ),
    junit: Path | None = typer.Option(None, "--junit", metavar="FILE", help="Also write the results as JUnit XML."),
    sarif: Path | None = typer.Option(
        None, "--sarif", metavar="FILE", help="Also write expectations that failed or are undecided as SARIF 2.1.0."
    ),
    every: bool = typer.Option(False, "--all", help="Also show expectations that hold."),
    over_ranks: str = OVER_RANKS_OPTION,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Check that effort grows as expected, stays below bounds, and equals a baseline.

    The exit code is 3 if an expectation does not hold or cannot be decided.

    \b
    Example: quipu check expectations.toml --sarif quipu.sarif
             quipu check expectations.toml --update-baseline
    """
    from quipu.report.check_views import check_json
    from quipu.report.formats.junit import junit_xml
    from quipu.report.formats.sarif import sarif_json
    from quipu.report.terminal import head
    from quipu.report.terminal.checks import check_lines
    from quipu.report.text import quality_fact

    from ..compare.expectations_file import read_expectations
    from ..installation import quipu_version

    file = read_expectations(expectations)
    side = _side(file, experiment, over_ranks_of(over_ranks))
    if update_baseline:
        _write_baseline(file, side, baseline)
        return
    results = _checked(file, side, baseline)
    title = f"{side.experiment.name}: {expectations}"
    sources = (expectations, experiment or file.experiment, baseline or file.baseline)
    if junit is not None:
        text = junit_xml(title, results)
        write_own(junit, text, lambda old: _JUNIT.search(old) is not None, "JUnit XML of quipu check", None, sources)
    if sarif is not None:
        text = json_text(sarif_json(results, Path.cwd(), quipu_version(), expectations), indent=1) + "\n"
        write_own(sarif, text, lambda old: _SARIF.search(old) is not None, "SARIF of quipu check", None, sources)
    if as_json:
        show_json(check_json(title, results))
    else:
        room = layout()
        show(
            [
                head(title, quality_fact(side.experiment.quality), side.experiment.notes, room),
                *check_lines(results, room, every),
            ]
        )
    if not all(one.held for one in results):
        raise typer.Exit(NOT_HELD)


def results_of(
    expectations: Path, experiment: Path | None, baseline: Path | None, over: Over = "mean"
) -> list[CheckResult]:
    """Return the results of the expectations in a file.

    experiment, baseline: used instead of the experiment and the baseline that the file names; None: those in the file
    are used. Raises UsageError if no experiment is given, or if the baseline does not exist, FormatError for a file
    that cannot be read, and the errors of `compare.checking.check`.
    """
    from ..compare.expectations_file import read_expectations

    file = read_expectations(expectations)
    return _checked(file, _side(file, experiment, over), baseline)


def _side(file: ExpectationsFile, experiment: Path | None, over: Over) -> Side:
    source = experiment or file.experiment
    if source is None:
        raise UsageError(
            f"EXPERIMENT is missing: give it on the command line, or write experiment = FOLDER in {file.path}"
        )
    return load_side(source, over)


def _checked(file: ExpectationsFile, side: Side, baseline: Path | None) -> list[CheckResult]:
    from ..compare.checking import check

    place = baseline or (file.baseline if file.needs_baseline or _is_there(file.baseline) else None)
    if place is not None and not place.exists():
        raise UsageError(
            f"{place}: the baseline does not exist; write it with: "
            f"quipu check {shlex.quote(str(file.path))} --update-baseline"
        )
    return check(file, side, None if place is None else load_side(place, side.experiment.over_ranks))


def _is_there(path: Path | None) -> bool:
    """Return whether a baseline exists. A baseline that no rule needs may be missing."""
    return path is not None and path.exists()


def _write_baseline(file: ExpectationsFile, side: Side, baseline: Path | None) -> None:
    from ..compare.baseline import is_text_of_baseline, to_baseline

    place = baseline or file.baseline
    if place is None:
        raise UsageError(f"{file.path}: the baseline is missing: write baseline = FILE, or give --baseline FILE")
    # One line per part, so that a diff of two versions is readable.
    parts = [f"{json_text(name)}: {json_text(part)}" for name, part in to_baseline(side).items()]
    text = "{" + ",\n ".join(parts) + "}\n"
    write_own(place, text, is_text_of_baseline, "baseline", None, [file.path])
    say(f"wrote {place}")
