# SPDX-License-Identifier: Apache-2.0
"""The check of license lines: which files need one, and where `--fix` puts it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / ".ci" / "licenses.py"
IDENTIFIER = "SPDX-License-Identifier: Apache-2.0"
SOURCES = {
    "module.py": ("x = 1\n", f"# {IDENTIFIER}\nx = 1\n"),
    "script": ("#!/bin/sh\ntrue\n", f"#!/bin/sh\n# {IDENTIFIER}\ntrue\n"),
    "program.c": ("int x;\n", f"/* {IDENTIFIER} */\nint x;\n"),
    "page.html": ("<!doctype html>\n", f"{{#- {IDENTIFIER} -#}}\n<!doctype html>\n"),
    "loop.f90": ("end\n", f"! {IDENTIFIER}\nend\n"),
}
OTHERS = {"empty.py": "", "data.json": "{}\n", "README.md": "# Title\n"}


def check(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, folder / ".ci" / "licenses.py", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(CHECK, tmp_path / ".ci")
    for name, (text, _) in SOURCES.items():
        (tmp_path / name).write_text(text)
    for name, text in OTHERS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link.py").symlink_to("module.py")
    for command in (("init", "--quiet"), ("add", *SOURCES, *OTHERS, "link.py")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_files_without_the_line_are_named(repository: Path) -> None:
    done = check(repository)
    assert done.returncode == 1
    assert done.stdout.split() == sorted(SOURCES)


def test_fix_adds_the_line_once(repository: Path) -> None:
    for _ in range(2):
        assert check(repository, "--fix").returncode == 0
        assert {name: (repository / name).read_text() for name in SOURCES} == {
            name: text for name, (_, text) in SOURCES.items()
        }
        assert {name: (repository / name).read_text() for name in OTHERS} == OTHERS
    assert check(repository).returncode == 0
