# SPDX-License-Identifier: Apache-2.0
"""Arguments of the compiler wrappers that are in files (`@FILE`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from quipu.agent.installation import native_file

CC = native_file("quipu-cc")


def build(folder: Path, *command: object) -> str:
    """Run a build step that must succeed and say nothing on stderr; return its stdout."""
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "add.c").write_text("int add(int n) { int s = 0; for (int i = 0; i < n; i++) s += i; return s; }\n")
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\nint add(int);\nint main(void) { printf("%d\\n", add(5)); return 0; }\n'
    )
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        "-c",
        "-E -o /dev/null",
        "-S",
        "-fsyntax-only",
        "-M",
        "--compile",
        "'-c'",
        '-DTEXT="a b"\n-c',
        "@inner.rsp",
        '"-DTEXT=\\"a @none\\"" @inner.rsp',
    ],
)
def test_response_files_say_what_is_done(sources: Path, options: str) -> None:
    """The wrapper reads response files as the compiler does. It adds link options only when it links."""
    (sources / "outer.rsp").write_text(f"-Wall -Werror {options} add.c")
    (sources / "inner.rsp").write_text("\ufeff-O2\t-c", encoding="utf-8")
    build(sources, CC, "@outer.rsp")


def test_response_files_hold_what_is_linked_and_own_options(sources: Path) -> None:
    (sources / "library.rsp").write_text("-fPIC -shared add.c -o libadd.so")
    build(sources, CC, "@library.rsp", "-Wl,-z,defs")
    (sources / "program.rsp").write_text("--quipu-naive -DMORE='1 2'\nmain.c @rest.rsp -o program")
    (sources / "rest.rsp").write_text("-L. -ladd -Wl,-rpath,$ORIGIN")
    build(sources, CC, "@program.rsp")
    assert build(sources, "./program") == "10\n"
    assert "quipu_effort" in build(sources, "nm", "program")
    build(sources, CC, "--quipu-off", "@rest.rsp", "main.c", "-o", "plain")
    assert "quipu" not in build(sources, "nm", "plain")


def test_response_files_that_cannot_be_read_are_the_compilers_error(sources: Path) -> None:
    (sources / "self.rsp").write_text("-c add.c @self.rsp")
    for argument, words in (("@absent", "no such file or directory: '@absent'"), ("@self.rsp", "recursive expansion")):
        done = subprocess.run([CC, argument], cwd=sources, capture_output=True, text=True, check=False)
        assert done.returncode != 0 and words in done.stderr
