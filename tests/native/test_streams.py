# SPDX-License-Identifier: Apache-2.0
"""Bytes that loads and stores walk through in order, whose addresses grow by a constant stride."""

from __future__ import annotations

import pytest

from .conftest import INSTALLED_LLVMS


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
def test_bytes_in_order(workshop, llvm: str, level: str) -> None:
    n = 1000
    run = workshop.run(workshop.build("streams.c", level), str(n))
    found = {path[-1]: values["bytes_in_order"] for path, values in run.tree.items() if len(path) == 2}
    assert found == {
        "sum": 8 * n,
        "gather": 4 * n,
        "stencil": 16 * n,
        "backward": 24 * n,
        "column": 0,
        "wide": 64 * n,
        "multiply": (3 * 12 + 16) * n,
        "copy": 16 * n,
    }
