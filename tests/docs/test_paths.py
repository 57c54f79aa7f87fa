# SPDX-License-Identifier: Apache-2.0
"""Paths and modules in the documents exist: in backticks, and as targets of links."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
# Written by Quipu, by its build or by its user, or part of MPI.
ELSEWHERE = ("build", "build/*", "mpi.h", "mpif.h", "prefix.*", "FILE.*")
SUFFIXES = {".py", ".c", ".h", ".cpp", ".def", ".toml", ".md", ".js", ".css", ".html", ".ll", ".yml", ".hpp"}


@cache
def tracked() -> frozenset[str]:
    """Return the files of the repository, and its folders with / at their end."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = listed.rstrip("\0").split("\0")
    return frozenset(files) | {f"{folder}/" for file in files for folder in PurePosixPath(file).parents}


def documents() -> list[str]:
    """Return the documents that speak of today; the changelog also speaks of what has gone."""
    return sorted(name for name in tracked() if name.endswith(".md") and name != "CHANGELOG.md")


def looks_like_a_path(word: str) -> bool:
    """Whether a word in backticks is a path of this repository: below one of its folders, or with a suffix of ours."""
    if re.fullmatch(r"[\w.*/-]+", word) is None or word.startswith((".", "/", "*")):
        return False
    folder, slash, _ = word.partition("/")
    return (slash == "/" and f"{folder}/" in tracked()) or PurePosixPath(word).suffix in SUFFIXES


def is_there(path: str) -> bool:
    """Whether the repository holds a path, or the end of one; NAME stands for any name, as * does."""
    pattern = re.sub(r"\bNAME\b", "*", path).rstrip("/")
    return any(fnmatchcase(f"/{known.rstrip('/')}", f"*/{pattern}") for known in tracked())


def missing_paths(text: str) -> list[str]:
    """Return the paths in backticks of a text that the repository does not hold."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    words = re.findall(r"`([^`\n]+)`", prose)
    left_out = ELSEWHERE
    return [
        word
        for word in words
        if looks_like_a_path(word) and not any(fnmatchcase(word, name) for name in left_out) and not is_there(word)
    ]


def missing_modules(text: str) -> list[str]:
    """Return the modules quipu.… in backticks that are neither a file or folder nor a name in one."""
    found = []
    for name in re.findall(r"`[^`\n]*?\bquipu\.((?:agent|modeling|report|mpi_wrap)(?:\.\w+)*)", text):
        path = name.replace(".", "/")
        parent, _, last = path.rpartition("/")
        holders = {f"{parent}.py", f"{parent}/__init__.py"} & tracked()
        named = any(re.search(rf"\b{last}\b", (ROOT / file).read_text(encoding="utf-8")) for file in holders)
        if not ({f"{path}.py", f"{path}/"} & tracked() or named):
            found.append(f"quipu.{name}")
    return found


@pytest.mark.parametrize("document", documents())
def test_what_a_document_names_is_there(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert missing_paths(text) + missing_modules(text) == []
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if ":" not in link]
    assert [link for link in links if not (ROOT / document).parent.joinpath(link).exists()] == []


def test_a_wrong_path_is_found() -> None:
    assert missing_paths("`modeling/selector.py`, `modeling/pmnf/`, `metrics.def`, `agent/refine`, `p/q`") == [
        "modeling/selector.py",
        "agent/refine",
    ]
    assert missing_modules("`quipu.modeling.selector`, `quipu.modeling.metrics.METRICS`") == ["quipu.modeling.selector"]
