# SPDX-License-Identifier: Apache-2.0
"""Let calls of Quipu's native parts fail (programs/faults.c), and compare the run with a run without faults."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from patience import PATIENCE
from quipu.agent.installation import native_folders
from quipu.agent.profile.reader import read_profile
from quipu.modeling.errors import FormatError

SOURCE = Path(__file__).parent / "programs" / "faults.c"
FUNCTIONS = tuple(re.findall(r"^    F\((\w+),", SOURCE.read_text(encoding="utf-8"), re.MULTILINE))
"""The functions whose calls can fail, in the order of faults.c."""
Verdict = Literal["as before", "different output", "hang", "crash", "unsaid"]


@dataclass(frozen=True)
class Example:
    """A measured program with its environment.

    In the command, FAULTS is replaced by `env` with the library of faults, if only some processes use the library.
    """

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ending:
    """The end of a program: its output, whether Quipu printed a message, and the effort in all profiles."""

    returncode: int
    stdout: str
    stderr: tuple[str, ...]
    said: bool
    effort: Mapping[str, int]


def build_faults(folder: Path) -> Path:
    """Compile the library that lets calls fail."""
    library = folder / "libfaults.so"
    command = ["clang-19", "-O1", "-fno-builtin", "-shared", "-fPIC", "-w", str(SOURCE), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    return library


def ending_of(example: Example, library: Path, faults: Mapping[str, str]) -> Ending | None:
    """Run an example with a fault; return None if it did not end in time."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"QUIPU_DIR": folder, **faults, **example.environment}
        sanitizer = map(str, native_folders()[0].glob("sanitizer.so"))  # docs/design/sanitizers.md: the first
        preload = ":".join([*sanitizer, str(library), *filter(None, [settings.get("LD_PRELOAD", "")])])
        words = [word.replace("FAULTS", f"env LD_PRELOAD={preload}") for word in example.command]
        process = subprocess.Popen(
            words,
            env={**os.environ, **settings, "LD_PRELOAD": "" if words != list(example.command) else preload},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return None
        ours = [line for line in stderr.splitlines() if line.startswith("quipu")]
        others = tuple(line for line in stderr.splitlines() if not line.startswith("quipu"))
        said, effort = bool(ours), dict[str, int]()
        for path in sorted(Path(folder).glob("profile-*.quipu")):
            try:
                profile = read_profile(path)
            except FormatError:
                said = True
                continue
            said = said or bool(profile.problems) or "mpi_problem" in profile.attributes
            for metric in profile.metrics:
                if metric.is_effort and metric.over_locations == "sum":
                    effort[metric.name] = effort.get(metric.name, 0) + int(profile.values[metric.name].sum())
        return Ending(process.returncode, stdout, others, said, effort)


def calls_of(example: Example, library: Path) -> tuple[Ending, dict[str, int]]:
    """Return the end of an example without a fault, and the number of calls of each function."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        ending = ending_of(example, library, {"FAULT_COUNTS": str(counts)})
        assert ending is not None
        numbers = struct.unpack(f"<{len(FUNCTIONS)}Q", counts.read_bytes())
    return ending, {name: number for name, number in zip(FUNCTIONS, numbers, strict=True) if number}


def verdict(usual: Ending, found: Ending | None) -> Verdict:
    """Return the effect of a fault on a program; "unsaid": numbers differ without a message."""
    if found is None:
        return "hang"
    if found.returncode != usual.returncode:
        return "crash"
    if (found.stdout, found.stderr) != (usual.stdout, usual.stderr):
        return "different output"
    return "as before" if found.said or found.effort == usual.effort else "unsaid"


def injected(
    example: Example, library: Path, most: int, leave_out: frozenset[str] = frozenset()
) -> Iterator[tuple[str, int, Verdict]]:
    """Let the n-th call of each function fail in a separate run, for every n or for `most` evenly spaced n."""
    usual, calls = calls_of(example, library)
    assert not usual.said
    for function, count in calls.items():
        if function in leave_out:
            continue
        step = max(1, -(-count // most))
        for number in range(1, count + 1, step):
            faults = {"FAULT_FUNCTION": function, "FAULT_NUMBER": str(number)}
            yield function, number, verdict(usual, ending_of(example, library, faults))
