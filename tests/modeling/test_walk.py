# SPDX-License-Identifier: Apache-2.0
"""The walk from an experiment to a selection of regions goes through its stages as docs/architecture.md lists them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from quipu.modeling import experiment as first_file
from quipu.modeling.analysis import analyze
from quipu.modeling.refine.selection import select

from .conftest import MakeProgram

ROOT = Path(__file__).resolve().parents[2]
MODELING = Path(first_file.__file__).parent


def stages() -> list[str]:
    """Return the files of the stages in the order of the document."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split("| stage | file | input → output |\n")[1].split("\n\n")[0]
    return [re.findall(r"`modeling/([^`]+)`", row)[0] for row in table.splitlines()[1:]]


def entered(walk: Callable[[], object], files: list[str]) -> list[str]:
    """Return which of the files a walk enters, in order: called from another file, another of these in between."""
    names = {str(MODELING / file): file for file in files}
    result: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        file, caller = frame.f_code.co_filename, frame.f_back
        if event == "call" and file in names and caller is not None and caller.f_code.co_filename != file:
            result.extend([names[file]] if result[-1:] != [names[file]] else [])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(before)
    return result


def test_the_walk_enters_each_stage_once_and_in_order(make_program: MakeProgram) -> None:
    measured = make_program()
    found = entered(lambda: select(analyze(measured), {"p": 1024.0, "n": 10000.0}), stages())
    assert found == stages()


def test_a_stage_that_is_entered_again_is_seen() -> None:
    measured = "errors.py", "limits.py"
    code = [compile("def enter(): pass", str(MODELING / file), "exec") for file in measured]
    spaces: list[dict[str, Callable[[], None]]] = [{}, {}]
    for own, space in zip(code, spaces, strict=True):
        exec(own, space)
    one, other = (space["enter"] for space in spaces)
    assert entered(lambda: (one(), one(), other(), one()), list(measured)) == [*measured, "errors.py"]
