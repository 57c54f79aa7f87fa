"""The examples, built once each with the compiler behind mpicc."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from example_programs import ALL, Program, build


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Program]:
    """All examples, built plain, by name."""
    return {name: build(name, tmp_path_factory.mktemp("plain")) for name in ALL}
