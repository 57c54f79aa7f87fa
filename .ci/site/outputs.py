# SPDX-License-Identifier: Apache-2.0
"""Outputs in the documentation: python .ci/site/outputs.py PAGE... runs a page's commands and writes what they print.

A page is followed from top to bottom in one folder. A fence with title="FILE" is a file. A fence of `sh` is run. A
fence of `text` right after it is its output, of standard output and standard error together. If the last line is `…`,
the fence has the first lines only, as many as it had before. `tests/docs/test_documented_commands.py` compares.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(sys.executable).parent
FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = "100"
CUT = "…"

_OF_THE_MACHINE = ("quipu: added ", "quipu: building the MPI ", "quipu: warning: ")
"""Begins of lines that depend on who runs the command, where, and for the how many-th time."""
_SOMETIMES = (
    "note: slowest rank",
    "note: this run had more ranks or threads",
    "note: this configuration had more ranks or threads",
    "note: this run ran while other",
    "note: this configuration ran while other",
)
"""Begins of notes that depend on what else the machine does."""
_OF_LOAD = (
    "[loaded-run]",
    "[loaded-machine]",
    "[slowest-rank]",
    "[deviating-run]",
    "[times-scatter]",
    "[costly-measuring]",
    "[busy-machine]",
)
"""Ends of notes that depend on it."""
_BY_CHANCE = re.compile(r"\W*unknown in \S+ .*\b0\.\d%")
"""A function of a library that was sampled, with less than 1 % of the time."""
_MEASURED = re.compile(
    r"\d{4}-\d\d-\d\dT\S+"  # a date
    r"|[+-]?\d+(?:\.\d+)?\s?(?:ns|µs|ms|s|h|%|×)(?!\w)"  # time, share, ratio
    r"|[+-]?\d+\.\d+(?:e[+-]?\d+)?|[+-]?\d+e[+-]?\d+"  # coefficients
    r"|(?<=\.h:)\d+"  # a line of the C++ library
)


@dataclass(frozen=True)
class Step:
    """A file to write, or a command to run with the output that the page shows (None: none).

    place: where this output is in the text of the page.
    """

    title: str
    body: str
    shown: str | None = None
    place: tuple[int, int] = (0, 0)


def steps(text: str) -> Iterator[Step]:
    """Yield what a reader does who follows a page."""
    fences = list(FENCE.finditer(text))
    for number, fence in enumerate(fences):
        language, title, body = fence.groups()
        if title:
            yield Step(title, body)
        elif language == "sh":
            after = fences[number + 1] if number + 1 < len(fences) else None
            close = after is not None and text[fence.end() : after.start()].count("\n") <= 3 and after[1] == "text"
            yield Step("", body, after[3], after.span(3)) if after is not None and close else Step("", body)


def follow(text: str, folder: Path) -> Iterator[tuple[Step, str]]:
    """Do what a page says, and yield each command with what it printed. Raises AssertionError where one fails.

    folder: an empty folder; it gets a copy of examples/.
    """
    ignored = shutil.ignore_patterns("*.o", "*.d", ".compiler", "*.runs", "*_cache", "__pycache__")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=ignored)
    environment = {**os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}", "COLUMNS": WIDTH}
    here = folder
    for step in steps(text):
        if step.title:
            (here / step.title).write_text(step.body, encoding="utf-8")
            continue
        state = folder / ".here"
        command = f"{step.body}\npwd >{state}"
        done = subprocess.run(
            ["bash", "-euc", command],
            cwd=here,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{step.body}\n{done.stdout}"
        here = Path(state.read_text(encoding="utf-8").strip())
        yield step, done.stdout


def printed(output: str) -> list[str]:
    """Return the lines of an output that a page shows."""
    parts: list[list[str]] = [[]]  # each note, and what is between notes
    for line in output.splitlines():
        if line == "" or line.startswith("note: "):
            parts.append([])
        parts[-1].append(line.rstrip())
    kept = (part for part in parts if part and not part[0].startswith(_SOMETIMES) and not part[-1].endswith(_OF_LOAD))
    lines = [line for part in kept for line in part if not line.startswith(_OF_THE_MACHINE)]
    return "\n".join(lines).strip("\n").split("\n")


def as_shown(output: str, before: str) -> str:
    """Return the text of a fence for an output. before: the text that it has now."""
    lines, old = printed(output), before.splitlines()
    if old and old[-1] == CUT:
        lines = [*lines[: len(old) - 1], CUT]
    return "\n".join(lines) + "\n"


def comparable(lines: list[str]) -> list[str]:
    """Return the lines without what depends on the run or on the compiler: times and what follows, widths, order."""
    plain = (re.sub(r"[│├└─…]+", " ", _MEASURED.sub("#", line)) for line in without_cost(lines))
    return sorted(" ".join(line.split()) for line in plain if line.strip())


def without_cost(lines: list[str]) -> Iterator[str]:
    """Yield lines but how good a measurement is and what it cost, whose parts depend on what else the machine does.

    They may go on in indented lines. A run of milliseconds has none.
    """
    inside = False
    for line in lines:
        inside = line.startswith(("quality ", "measuring ")) or (inside and line.startswith(" "))
        if not inside and not _BY_CHANCE.match(line):
            yield line


def missing(shown: str, output: str) -> list[str]:
    """Return the lines of a fence that the output does not have, and, of a whole fence, those that only that has."""
    wanted, found = comparable(shown.splitlines()), comparable(printed(output))
    lacking = [line for line in wanted if line and line not in found]
    whole = not shown.rstrip().endswith(CUT)
    return lacking + ([f"+ {line}" for line in found if line not in wanted] if whole else [])


def update(page: Path) -> None:
    """Write the outputs of a page anew."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        done = [(step, output) for step, output in follow(text, Path(folder)) if step.shown is not None]
    for step, output in reversed(done):
        first, last = step.place
        text = text[:first] + as_shown(output, step.shown or "") + text[last:]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name))
