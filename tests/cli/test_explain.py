# SPDX-License-Identifier: Apache-2.0
"""The catalogues of messages, and `quipu explain`."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from quipu.agent.catalogue import NO_RUNS
from quipu.agent.cli.explain import entries
from quipu.agent.native_catalogue import ENTRIES as NATIVE_ENTRIES
from quipu.modeling.catalogue import COUNTS_MISSED, COUNTS_VARY
from quipu.modeling.errors import FormatError, MeasurementError
from quipu.modeling.message import Entry, code_of, without_codes
from quipu.modeling.pmnf.model import Model
from quipu.report.terminal import Layout, plain_text
from quipu.report.terminal.tables import model_table
from quipu.report.views import ModelRow

from .conftest import Quipu

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NATIVE = ("agent/runtime", "agent/shim", "mpi_wrap/native", "llvm_pass")
ADDED = {"quipu: error: %s [%s]\\n", "quipu: "}
"""Messages whose code is an argument: those of the wrappers, and of the pass, which reads the filter."""


def anchors(page: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.code)
def test_each_message_has_a_code_two_sentences_and_a_page(entry: Entry) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", entry.code)
    assert not entry.text.endswith(".") and len(re.findall(r"[.?!](?= [A-Z{])", entry.text)) <= 1
    assert entry.meaning.endswith(".") and entry.meaning[0].isupper()
    page, _, anchor = entry.page.partition("#")
    assert (DOCS / page).is_file() and (not anchor or anchor in anchors(page))


def test_codes_are_unique() -> None:
    assert [code for code, number in Counter(entry.code for entry in entries()).items() if number > 1] == []


def test_a_message_keeps_its_code() -> None:
    note = COUNTS_MISSED(percent=18.4)
    assert note == "differs from the counts by 18 %: no candidate function reproduces them [counts-missed]"
    assert code_of(note) == "counts-missed" and COUNTS_MISSED.is_in(["other", note])
    assert COUNTS_MISSED.without((note, "other")) == ("other",) and not COUNTS_VARY.is_in([note])
    assert code_of("a list [x-y] in a text") == code_of("an array [0]") == ""
    assert without_codes(f"{note}; {note}").count("[") == 0
    assert (
        MeasurementError(NO_RUNS(folder="heat")).code == FormatError("heat", NO_RUNS(folder="heat")).code == "no-runs"
    )
    assert FormatError("heat", "is damaged", 3).code == ""


def test_native_messages_end_with_a_code() -> None:
    """Each literal of the sources that begins a message ends with a code, or the wrapper adds one."""
    said: set[str] = set()
    for path in sorted(path for part in NATIVE for path in (ROOT / part).rglob("*.[ch]*")):
        text = re.sub(r'"\s*(?:OTHER\s*)?"', "", path.read_text(encoding="utf-8"))
        for message in re.findall(r'"(quipu(?:-exec)?: [^"]*)"', text):
            code = code_of(message.removesuffix("\\n"))
            assert code or message in ADDED, f"{path.name}: {message}"
            said.add(code)
    said |= set(re.findall(r'"([a-z]+-[a-z-]+)"\)', (ROOT / "llvm_pass/wrapper/main.cpp").read_text(encoding="utf-8")))
    assert said - {""} == {entry.code for entry in NATIVE_ENTRIES}


def test_explain(quipu_here: Quipu, heat: Path) -> None:
    said = quipu_here("explain", "no-runs").out
    assert said.startswith("no-runs\n") and "contains no measured run" in said and "docs/questions.md" in said
    assert quipu_here("explain", "[no-runs]").out == said
    listed = quipu_here("explain").out.splitlines()
    assert [line.split()[0] for line in listed] == [entry.code for entry in entries()]
    wrong = quipu_here("explain", "runs")
    assert wrong.code == 2 and "did you mean" in wrong.err and "no-runs" in wrong.err
    (message,) = json.loads(quipu_here("explain", "no-runs", "--json").out)["messages"]
    assert message["code"] == "no-runs" and "{folder}" in message["text"]


def test_errors_and_notes_end_with_their_codes(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert quipu_here("model", "empty").err.endswith("[no-runs]\n")
    assert quipu_here("predict", heat, "--at", "p=4").err.endswith("[missing-value]\n")
    assert "[far-beyond]" in quipu_here("predict", heat, "--at", "p=1024,n=32").out


def test_a_note_on_several_call_paths_is_printed_once() -> None:
    model = Model(("n",), 7.0, ())
    rows = [
        ModelRow(("main", name), "blocks", "7", 1.0, "measured", (COUNTS_MISSED(percent=percent),), model)
        for name, percent in (("a", 8), ("b", 9), ("c", 30))
    ]
    text = " ".join(plain_text(model_table(rows, Layout(100))).split())
    assert text.count("differs from the counts") == 1
    assert "note: 3 call paths, such as main->a: differs from the counts by 8 %" in text and "[counts-missed]" in text
    text = " ".join(plain_text(model_table(rows[:2], Layout(100))).split())
    assert text.count("differs from the counts") == 2 and "[counts-missed]" not in text
