# SPDX-License-Identifier: Apache-2.0
"""What the shim of each rank writes down."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from quipu.agent.installation import native_file
from quipu.agent.launch.raw_folder import read_rank_file

# é and two more characters, and bytes that begin none: stray, too long, a surrogate, beyond the last, cut.
NAME = "é€😀".encode() + b' "\\\n\x7f \xff \x80 \xc0\xaf \xe0\x80\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82'


def test_names_of_programs_are_any_bytes(tmp_path: Path) -> None:
    program = tmp_path / os.fsdecode(NAME)
    program.symlink_to("/bin/true")
    rank = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1", "QUIPU_DIR": str(tmp_path)}
    subprocess.run([native_file("quipu-exec"), program], env={**os.environ, **rank}, check=True)
    note = tmp_path / "rank-0.json"
    assert read_rank_file(note).rank == 0
    assert json.loads(note.read_bytes())["program"] == str(program)
