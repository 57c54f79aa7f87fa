# SPDX-License-Identifier: Apache-2.0
"""Where Quipu is installed, by however it was."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from quipu.modeling.prefix import NATIVE, prefix


@pytest.mark.parametrize(
    "package",
    [
        "lib/python3.11/site-packages/quipu",
        "lib64/python3.11/site-packages/quipu",
        "local/lib/python3.11/dist-packages/quipu",
        "lib/python3/dist-packages/quipu",
    ],
)
def test_the_prefix_is_above_the_package(tmp_path: Path, package: str) -> None:
    """Of a package of Spack, or of pip with --user and --prefix: not the prefix of the running Python."""
    folder = tmp_path / NATIVE
    folder.mkdir(parents=True)
    (folder / "libquipu.so").touch()
    assert prefix({}, tmp_path / package) == tmp_path
    assert prefix({"QUIPU_HOME": "/other"}, tmp_path / package) == Path("/other")


def test_what_is_not_installed_there_is_with_python(tmp_path: Path) -> None:
    assert prefix({}, tmp_path / "lib/python3.11/site-packages/quipu") == Path(sysconfig.get_path("data"))
