# SPDX-License-Identifier: Apache-2.0
"""The check of commit subjects accepts the good ones of CONTRIBUTING.md, and names problems of others."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "subjects.py"
SUBJECTS = runpy.run_path(str(SCRIPT))


def test_the_good_subjects_are_accepted() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("Ten good subjects")[1]
    good = re.findall(r"^    (\S.*)$", text, re.MULTILINE)
    assert len(good) == 10
    assert [problem for subject in good for problem in SUBJECTS["problems"](subject)] == []


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("Endless time limits are none", "is not of the form"),
        ("Campaign: reject an infinite time limit", "is not of the form"),
        ("campaign: reject an infinite time limit.", "ends with a full stop"),
        ("campaign: rejected an infinite time limit", "says 'rejected'"),
        ("campaign: rejecting an infinite time limit", "says 'rejecting'"),
        ("campaign: rejects an infinite time limit", "says 'rejects'"),
        ("campaign: an infinite time limit is an error", "says 'an'"),
        ("docs: HTML for all pages", "says 'HTML'"),
        ("campaign: reject " + "very " * 12 + "long limits", "characters"),
        ("fixup! campaign: reject an infinite time limit", "is not of the form"),
    ],
)
def test_other_subjects_are_refused(subject: str, problem: str) -> None:
    (found,) = SUBJECTS["problems"](subject)
    assert problem in found


@pytest.mark.parametrize(
    "subject",
    [
        "runtime: process signals of ranks that have no thread",
        "pass, runtime: pass names of files",
        "docs: express limits as a list",
        "python: embed the notebook of the tutorial",
        "mpi_wrap: discuss sizes of messages",
        "ci: re-run what a signal stopped",
        'Revert "campaign: reject an infinite time limit"',
    ],
)
def test_verbs_that_look_like_other_forms_are_accepted(subject: str) -> None:
    assert list(SUBJECTS["problems"](subject)) == []


def test_a_message_in_a_file_is_checked_by_its_first_line(tmp_path: Path) -> None:
    message = tmp_path / "message"
    message.write_text("docs: name the limits\n\nWhat is said here. Is not checked.\n")
    assert subprocess.run([sys.executable, SCRIPT, message], check=False).returncode == 0
    message.write_text("names of limits\n")
    done = subprocess.run([sys.executable, SCRIPT, message], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "'names of limits' is not of the form" in done.stdout
