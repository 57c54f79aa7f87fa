# SPDX-License-Identifier: Apache-2.0
"""Calls of the runtime and of quipu-exec that fail: the program ends as it would, and the run says what it lacks.

Some of the calls of each function; `make bench-faults` does all, and those of the MPI library.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from quipu.agent.installation import native_file, native_folders

from .conftest import Workshop
from .injection import Example, build_faults, injected

EXAMPLES = {
    "paths": ("folded.cpp", ["9"], {}),
    "forks": ("forks.c", ["50"], {}),
    "threads": ("threads.cpp", ["4"], {}),
    "samples": ("threads.cpp", ["4"], {"QUIPU_SAMPLE": "1000", "QUIPU_COUNTERS": "page_faults=1:2"}),
    "shim": ("loops.c", ["5"], {"OMPI_COMM_WORLD_LOCAL_RANK": "1"}),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_call_that_fails_changes_nothing_for_the_program(workshop: Workshop, tmp_path: Path, name: str) -> None:
    source, arguments, environment = EXAMPLES[name]
    program = workshop.build(source, "-O1")
    shim = [str(native_file("quipu-exec"))] if name == "shim" else []
    example = Example([*shim, str(program), *arguments], environment)
    verdicts = {
        f"call {number} of {function}": found
        for function, number, found in injected(example, build_faults(tmp_path), most=3)
    }
    sanitized = any(native_folders()[0].glob("sanitizer.so"))  # whose own calls, in place of ours, go through
    assert len(verdicts) > (10 if sanitized else 20)
    assert {call: found for call, found in verdicts.items() if found != "as before"} == {}
