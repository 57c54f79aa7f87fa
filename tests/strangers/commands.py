# SPDX-License-Identifier: Apache-2.0
"""Run commands that read files on hostile input, and check that they end with an error or a result."""

from __future__ import annotations

import contextlib
import io
import random
import re
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from quipu.agent.cli.main import run_command_line

from .hostile import hostile_experiment, hostile_file, hostile_raw_folder

# Characters that control a terminal or change the direction of text; JSON contains them as escapes.
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
SECONDS, MIB = 20.0, 512
OF_EXPERIMENTS = (
    ("show",),
    ("show", "--json"),
    ("show", "--ranks"),
    ("show", "--communication"),
    ("model", "--all", "-o", "{out}/models.json"),
    ("model", "--json", "--noise"),
    ("predict", "--at", "p=64", "--metric", "blocks"),
    ("diagnose",),
    ("kernels", "--at", "p=64"),
    ("report", "-o", "{out}/report.html"),
    ("export", "-o", "{out}/export.json"),
    ("export", "-o", "{out}/export.folded"),
    ("export", "-o", "{out}/export.speedscope.json"),
    ("export", "-o", "{out}/export.trace.json"),
    ("export", "-o", "{out}/export.hatchet.json"),
    ("filter", "-o", "{out}/filter"),
)


class Surprise(AssertionError):
    """A command behaved wrongly with a file from an unknown source."""


def check_command(arguments: Sequence[str], out: Path) -> int:
    """Run a command in this process and return its exit code. Raises Surprise if it does not behave.

    out: the folder that it writes to.
    """
    printed, said = io.StringIO(), io.StringIO()
    began, before = time.thread_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = run_command_line(arguments)
    took = time.thread_time() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    texts = [printed.getvalue(), said.getvalue()]
    texts += [path.read_text(encoding="utf-8") for path in out.iterdir() if path.is_file()]
    errors = [line for line in said.getvalue().splitlines() if line.startswith("quipu: error: ")]
    wrong = {
        f"exit code {code} with {len(errors)} errors": len(errors) != (code != 0),
        "a steering character": any(STEERING.search(text) for text in texts),
        f"{took:.1f} s": took > SECONDS,
        f"{grown} MiB more": grown > MIB,
        "an error as long as a book": max(map(len, errors), default=0) > 5000,
    }
    if found := [what for what, is_so in wrong.items() if is_so]:
        raise Surprise(f"quipu {' '.join(arguments)}: {', '.join(found)}\n{said.getvalue()[:2000]}")
    return code


def check_case(seed: int, whole: Path, scratch: Path, commands: int) -> dict[str, int]:
    """Make the hostile input of a seed and give it to some commands; return their exit codes.

    whole: the experiment that is changed; scratch: an empty folder; commands: how many of those for experiments.
    """
    chance = random.Random(seed)
    out = scratch / "deep" / "out"
    out.mkdir(parents=True)
    codes = {}
    if chance.random() < 0.3:
        raw = hostile_raw_folder(scratch / "deep" / ".raw-x", chance)
        codes["merge"] = check_command(["merge", "--force", "--keep-raw", str(raw), "-o", str(out)], out)
        for run in sorted(out.iterdir()):
            for view in ("--ranks", "--communication"):
                codes["show"] = check_command(["show", str(run), view], out)
    else:
        change = hostile_experiment if chance.random() < 0.7 else hostile_file
        folder = change(whole, scratch / "deep" / "x", chance)
        for words in chance.sample(OF_EXPERIMENTS, commands):
            arguments = [words[0], str(folder), *(word.replace("{out}", str(out)) for word in words[1:])]
            codes[words[0]] = check_command(arguments, out)
    strangers = sorted(path.name for folder in (scratch, scratch / "deep") for path in folder.iterdir())
    if not set(strangers) <= {"deep", "out", "x", ".raw-x"}:
        raise Surprise(f"written outside of the output folder: {strangers}")
    return codes
