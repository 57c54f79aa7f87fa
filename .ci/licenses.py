# SPDX-License-Identifier: Apache-2.0
"""Check that each source file names its license at its start: python .ci/licenses.py [--fix].

--fix adds the line where it is missing. Without --fix the exit code is 1 if a file has no such line.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = "SPDX-License-Identifier: Apache-2.0"
HASH, SLASHES, BLOCK = f"# {TEXT}", f"// {TEXT}", f"/* {TEXT} */"
LINES = {
    **dict.fromkeys((".py", ".sh", ".cmake", "Makefile", "CMakeLists.txt", "#!"), HASH),
    **dict.fromkeys((".cpp", ".hpp", ".js", ".mjs"), SLASHES),
    **dict.fromkeys((".c", ".h", ".def", ".css"), BLOCK),  # C90 has no other comments
    ".html": f"{{#- {TEXT} -#}}",
    ".f90": f"! {TEXT}",
    ".ll": f"; {TEXT}",
}
"""The line by the suffix or the name of a file; #! stands for files that start with these characters."""
OTHER_COMMENTS = {"share/apptainer/quipu.def": HASH}
MUST_BE_FIRST = ("#!", "#%Module")
NEAR = 3  # a first line that has to stay first, the license, and one line of another tool


def tracked() -> list[str]:
    """Return the text files of the repository; links are not files of their own."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


def line_of(name: str, text: str) -> str | None:
    """Return the line that a file must have, None if it is no source file or is empty."""
    path = Path(name)
    start = "#!" if not path.suffix and text.startswith(MUST_BE_FIRST) else ""
    return OTHER_COMMENTS.get(name) or LINES.get(path.name) or LINES.get(path.suffix) or LINES.get(start)


def fixed(text: str, line: str) -> str:
    """Return the text with the line at its start, below a line that has to be the first one."""
    first, newline, rest = text.partition("\n")
    return f"{first}{newline}{line}\n{rest}" if text.startswith(MUST_BE_FIRST) else f"{line}\n{text}"


def main() -> None:
    """Check all files."""
    missing = []
    for name in tracked():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        line = line_of(name, text) if text else None
        if line is not None and line not in text.split("\n", NEAR)[:NEAR]:
            missing.append(name)
            if "--fix" in sys.argv[1:]:
                (ROOT / name).write_text(fixed(text, line), encoding="utf-8")
    if missing and "--fix" not in sys.argv[1:]:
        print(*missing, sep="\n")
        sys.exit(f"{len(missing)} files do not name their license; add the line: python .ci/licenses.py --fix")


main()
