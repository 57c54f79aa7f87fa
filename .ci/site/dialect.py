# SPDX-License-Identifier: Apache-2.0
"""Wordings to avoid, in the documentation and in comments, docstrings and messages: python .ci/site/dialect.py

With `--lower` it writes the present numbers into dialect.toml where they have fallen; with a wording of that file it
lists where that stands.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from prose import prose

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("dialect.toml")
AREAS = {
    "docs": ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "examples/*.md"),
    "code": tuple(f"{folder}/*" for folder in ("agent", "modeling", "report", "mpi_wrap", "llvm_pass", "package")),
}
_MADE = ("docs/reference/", "docs/measurements.md")  # of the program and of benchmarks
_NATIVE_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}  # of Python 3.12
_SLACK = 3  # and 5 %: two branches that are merged may each add some
_MOST_SHOWN = 12  # places of one wording


@dataclass(frozen=True)
class Wording:
    """One wording to avoid; most: how often it may still occur, by area."""

    found: str
    write: str
    most: dict[str, int]


def wordings() -> list[Wording]:
    """Return the table."""
    return [Wording(**one) for one in tomllib.loads(TABLE.read_text(encoding="utf-8"))["wording"]]


def texts(name: str, content: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of what people read in a file: prose, comments, docstrings and messages."""
    if name.endswith(".md"):
        yield 1, prose(content)
    elif name.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(content).readline):
            if token.type == tokenize.COMMENT or (token.type in _STRINGS and " " in token.string):
                yield token.start[0], token.string
    elif name.endswith((".c", ".cpp", ".h", ".js", ".def")):
        for comment in _NATIVE_COMMENT.finditer(content):
            yield content.count("\n", 0, comment.start()) + 1, comment[0]


def places(wording: Wording, read: Sequence[tuple[str, int, str]]) -> list[str]:
    """Return file, line and text of each occurrence in what `texts_of` returned."""
    pattern = re.compile(wording.found.replace(" ", r"\s+(?:#\s+|\*\s+|//+\s+)?"), re.IGNORECASE)
    found = []
    for name, line, text in read:
        for match in pattern.finditer(text):
            at = line + text.count("\n", 0, match.start())
            found.append(f"{name}:{at}: {' '.join(text[max(match.start() - 30, 0) : match.end() + 30].split())}")
    return found


def texts_of(area: str) -> list[tuple[str, int, str]]:
    """Return name of the file, line and text of all that people read in an area."""
    listed = subprocess.run(["git", "ls-files", *AREAS[area]], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines() if not name.startswith(_MADE) and (ROOT / name).is_file()]
    kept = [name for name in names if name.endswith((".md", ".py", ".c", ".cpp", ".h", ".js", ".def"))]
    return [(name, *one) for name in kept for one in texts(name, (ROOT / name).read_text(encoding="utf-8"))]


@cache
def added_lines() -> frozenset[tuple[str, str]]:
    """Return file and line of what was added after the last change of the table."""
    changed = ["git", "log", "-1", "--format=%H", "--", str(TABLE)]
    last = subprocess.run(changed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    command = ["git", "diff", "--unified=0", "--no-prefix", last or "HEAD"]
    found, name = set(), ""
    for line in subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("+++ "):
            name = line.removeprefix("+++ ")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first = int(hunk[1])
            found |= {(name, str(at)) for at in range(first, first + int(hunk[2] or 1))}
    return frozenset(found)


def main(arguments: Sequence[str]) -> int:
    """Print wordings that have become more; return 1 if there are any."""
    read = {area: texts_of(area) for area in AREAS}
    if arguments and arguments[0] != "--lower":
        for wording in wordings():
            if re.search(wording.found, arguments[0], re.IGNORECASE):
                print("\n".join(one for area in AREAS for one in places(wording, read[area])))
        return 0
    more, text = 0, TABLE.read_text(encoding="utf-8")
    for wording in wordings():
        numbers = {}
        for area in AREAS:
            found = places(wording, read[area])
            numbers[area] = min(len(found), wording.most[area])
            if len(found) > wording.most[area] + max(_SLACK, wording.most[area] // 20):
                more += 1
                new = [one for one in found if tuple(one.split(":")[:2]) in added_lines()] or found
                shown = new[:_MOST_SHOWN] + (["…"] if len(new) > _MOST_SHOWN else [])
                print(
                    f"{wording.found!r} stands {len(found)} times in {area}, at most {wording.most[area]} are allowed"
                )
                print(f"  write: {wording.write}", *shown, sep="\n  ")
        text = text.replace(_numbers(wording, wording.most), _numbers(wording, numbers))
    if "--lower" in arguments:
        TABLE.write_text(text, encoding="utf-8")
    return int(bool(more))


def _numbers(wording: Wording, numbers: dict[str, int]) -> str:
    listed = ", ".join(f"{area} = {number}" for area, number in numbers.items())
    return f"write = '{wording.write}'\nmost = {{ {listed} }}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
