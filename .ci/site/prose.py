# SPDX-License-Identifier: Apache-2.0
"""Check spelling everywhere, and the prose of the pages that users read first: python .ci/site/prose.py

Spelling (codespell), usage (proselint), and the length of sentences. The last two leave out code, outputs, tables and
headings.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(sys.executable).parent
_PAGES = (
    "concepts",
    "questions",
    "tutorial",
    "campaign-files",
    "checks",
    "compare",
    "refine",
    "schedulers",
    "python-api",
    "modeling",
)
NAMES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", *(f"docs/{name}.md" for name in _PAGES))
LONGEST = 30  # words of a sentence

# Names of programs and parameters look like misspelled words.
_WORDS = "als,indx,inout,mesure,notin,ois,shwo,statics"
_SPELLED = tuple(f"*.{ending}" for ending in ("md", "py", "c", "cpp", "h", "def", "js", "toml", "f90"))
_NO_PROSE = re.compile(r"^```.*?^```$|^(?:(?: {4,}|\||#+ )[^\n]*\n)+|^<[^\n]*>$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return the README and the pages."""
    return [*(ROOT / name for name in NAMES), *sorted((ROOT / "docs" / "howto").glob("*.md"))]


def prose(text: str) -> str:
    """Return a text without code and tables, and with its lines where they were."""
    plain = _NO_PROSE.sub(lambda match: "\n" * match[0].count("\n"), text)
    plain = re.sub(r"`[^`]*`", lambda match: "code" + "\n" * match[0].count("\n"), plain)
    return re.sub(r"\]\([^)]*\)", "]", plain)


def long_sentences(text: str) -> Iterator[str]:
    """Yield sentences with more words than LONGEST."""
    for paragraph in re.split(r"\n\s*\n|\n(?=[-#] |\d+\. )", prose(text)):
        for sentence in re.split(r"(?<=[.?!:])\s+", " ".join(paragraph.split())):
            if len(re.findall(r"[\w’'-]+", sentence)) > LONGEST:
                yield sentence


def usage() -> list[str]:
    """Return what proselint finds."""
    folder = ROOT / "build" / "prose"
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages():
        (folder / page.name).write_text(prose(page.read_text(encoding="utf-8")), encoding="utf-8")
    command = [str(SCRIPTS / "proselint"), "check", *(page.name for page in pages())]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines() if done.returncode else []


def spelling() -> list[str]:
    """Return what codespell finds in all pages, comments, docstrings and messages."""
    listed = subprocess.run(["git", "ls-files", *_SPELLED], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    command = [str(SCRIPTS / "codespell"), "--ignore-words-list", _WORDS, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    long = [f"{page.name}: {one}" for page in pages() for one in long_sentences(page.read_text(encoding="utf-8"))]
    found = [*spelling(), *usage(), *(f"more than {LONGEST} words: {one}" for one in long)]
    print("\n".join(found), end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
