# SPDX-License-Identifier: Apache-2.0
"""Check the subjects of new commits: python .ci/subjects.py, or with a file that holds one message.

A subject is `part: what changed`: the part in lower case, then a verb in the imperative, at most 72 characters, no full
stop. New are the commits that came after this file, and that the upstream branch, if there is one, does not have yet.
CONTRIBUTING.md has examples.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 72  # characters
_FORM = re.compile(r"(?P<part>[a-z][a-z0-9_.+/-]*(?:,? (?:and )?[a-z][a-z0-9_.+/-]*)*): (?P<first>\S+) \S")
_PAST_OR_GERUND = re.compile(r"[a-z]+(?:ed|ing)$")
_THIRD_PERSON = re.compile(r"[a-z]+[^aious'\W]s$|[a-z]+(?:ses|xes|zes|ies)$")
_NO_VERB = re.compile(
    "a|all|an|and|any|are|as|at|be|because|before|both|by|can|each|every|few|for|from|has|have|how|if|in|is|it|its|less|"
    "many|more|most|new|no|none|not|of|on|one|only|or|other|same|some|such|than|that|the|their|there|these|this|three|"
    "to|two|was|what|when|where|which|who|why|with"
)
_VERBS_THAT_LOOK_LIKE_OTHERS = {
    "bring",
    "embed",
    "feed",
    "need",
    "seed",
    "speed",
    "shed",
    "string",
    "exceed",
    "proceed",
}


def problems(subject: str) -> Iterator[str]:
    """Yield what is wrong with a subject; nothing if it is that of a revert."""
    if subject.startswith('Revert "'):
        return
    if len(subject) > LONGEST:
        yield f"has {len(subject)} characters, at most {LONGEST} are allowed"
    if subject.endswith("."):
        yield "ends with a full stop"
    if (found := _FORM.match(subject)) is None:
        yield "is not of the form `part: what changed`, with the part in lower case"
        return
    first = found["first"]
    if first not in _VERBS_THAT_LOOK_LIKE_OTHERS and (
        _NO_VERB.fullmatch(first)
        or not re.fullmatch(r"[a-z]+(?:-[a-z]+)?,?", first)
        or _PAST_OR_GERUND.match(first)
        or _THIRD_PERSON.match(first)
    ):
        yield f"says {first!r} after the part; begin with a verb in the imperative, such as add, fix, read, report"


def _git(*words: str) -> str | None:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def new_subjects() -> list[tuple[str, str]]:
    """Return the abbreviated hash and the subject of each new commit; the last one where the history is cut off."""
    added = (_git("log", "--diff-filter=A", "--format=%H", "--", ".ci/subjects.py") or "").split()
    known = [f"^{added[-1]}^@"] if added and _git("rev-parse", f"{added[-1]}^") else ["-1"]
    upstream = (_git("rev-parse", "--abbrev-ref", "@{upstream}") or "").strip()
    listed = _git("log", "--no-merges", "--format=%h %s", *known, *([f"^{upstream}"] if upstream else []), "HEAD")
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in (listed or "").splitlines()]


def main(files: Sequence[str]) -> int:
    """Print what is wrong; return 1 if anything is."""
    subjects = [(file, Path(file).read_text(encoding="utf-8").partition("\n")[0]) for file in files] or new_subjects()
    found = [f"{name}: the subject {subject!r} {one}" for name, subject in subjects for one in problems(subject)]
    print("\n".join(found), end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
