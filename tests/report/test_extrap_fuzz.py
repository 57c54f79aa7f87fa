# SPDX-License-Identifier: Apache-2.0
"""Damaged files end in FormatError and nothing else, in every format."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import needs
from quipu.modeling.errors import FormatError
from quipu.modeling.limits import reading
from quipu.report.formats.detect import read_experiment
from quipu.report.formats.extrap import parse_archive

from . import extrap_samples
from .extrap_samples import write_cube

_EXPERIMENT = (
    b'{"Extra-P": "4.2.5", "parameters": ["p"], "measurements": {"main->f": {"time": ['
    b'{"coordinate": [4.0], "mean": 1.5, "std": 0.5, "repetitions": 2, "values": [0, 0]},'
    b'{"coordinate": [8.0], "mean": 9.0, "std": 0.0, "repetitions": 1, "values": [0, 1]},'
    b'{"coordinate": [16.0], "mean": 7.5, "std": 0.0, "repetitions": 1, "values": null}]}}}'
)


def archive(experiment: bytes = _EXPERIMENT, **changes: bytes) -> bytes:
    """Return a .extra-p file with two kept arrays; `changes` replace the members offsets and values."""
    values, offsets = io.BytesIO(), [2, 0, 0]
    values.write(b"Extra-P VALUES\0\0")
    for place, single in enumerate((np.array([1.0, 2.0]), np.array([[8.0, 10.0]]))):
        offsets[place + 1] = values.tell()
        np.lib.format.write_array(values, single)
    members = {
        "offsets": b"Extra-P INDEX\0\0\0" + struct.pack("<3Q", *offsets),
        "values": values.getvalue(),
        **changes,
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr(zipfile.ZipInfo("values/0.vals"), members["values"])
        opened.writestr(zipfile.ZipInfo("values/0.indx"), members["offsets"])
        opened.writestr("experiment.json", experiment, compresslevel=1)
    return file.getvalue()


SAMPLES = {
    **{name: (suffix, text.encode()) for name, (suffix, text, _) in extrap_samples.ALL.items()},
    "gzip": (".json.gz", gzip.compress(extrap_samples.JSON.encode(), mtime=0)),
    "archive": (".extra-p", archive()),
}


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Return bytes with up to five places changed, removed, doubled or cut off."""
    found = bytearray(content)
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, max(0, len(found) - 1)))
        until = at + draw(st.integers(0, 40))
        match draw(st.integers(0, 4)):
            case 0:
                found[at : at + 1] = draw(st.binary(min_size=1, max_size=4))
            case 1:
                del found[at:until]
            case 2:
                found[at:at] = found[at:until]
            case 3:
                tokens = [b"null", b"[", b"{", b'"', b"1e999", b"NaN", b"-1", b"\n", b"()", b"->", b"9" * 30, b"\xff"]
                found[at:at] = draw(st.sampled_from(tokens))
            case _:
                del found[at:]
    return bytes(found)


@pytest.mark.parametrize("kind", SAMPLES)
def test_damage_is_an_error_of_the_file(kind: str, tmp_path: Path) -> None:
    suffix, content = SAMPLES[kind]
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    assert len(read_experiment(path).tree) == 2

    @settings(max_examples=400)
    @given(damaged(content))
    def run(changed: bytes) -> None:
        path.write_bytes(changed)
        try:
            read_experiment(path)
        except FormatError as error:
            assert str(path) in str(error)

    run()


@needs("pycubexr")
@settings(max_examples=300)
@given(st.data())
def test_damaged_cube_profiles(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.getbasetemp() / "cube-fuzz"
    path = folder / "x.p4.r1" / "profile.cubex"
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    visits = [[1, 1], [1, 1], [1, 1]]
    write_cube(path, {"time": ("DOUBLE", "INCLUSIVE", rows), "visits": ("UINT64", "EXCLUSIVE", visits)})
    path.write_bytes(data.draw(damaged(path.read_bytes().rstrip(b"\0"))))
    try:
        read_experiment(folder)
    except FormatError as error:
        assert str(folder) in str(error)


def test_kept_values_are_read() -> None:
    experiment = parse_archive(archive(), "x.extra-p", "x")
    values = experiment.values["time"][1]
    assert values[0].tolist() == [1, 2]
    assert values[1, 0] == 9
    assert values[2, 0] == 7.5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (archive(offsets=b"no"), r"its values are not in values/0\.indx"),
        (archive(values=b"no"), r"its values are not in values/0\.indx"),
        (archive(_EXPERIMENT.replace(b"[0, 1]", b"[0, 2]")), r"entry 2: its values are not in values/0\.indx"),
        (archive(_EXPERIMENT.replace(b"[0, 1]", b"[7, 0]")), r"without values/7\.indx"),
        (archive(_EXPERIMENT.replace(b"[0, 1]", b'["../x", 0]')), r'"values" is not \[chunk, index\]'),
        (archive(_EXPERIMENT.replace(b'"mean": 9.0', b'"mea": 9.0')), '"mean" is missing'),
        (archive(b"[]"), '"measurements" is missing'),
        (archive()[:-10], "damaged .extra-p file"),
    ],
)
def test_archives_that_are_not_as_they_should(content: bytes, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        parse_archive(content, "x.extra-p", "x")


def test_an_archive_that_expands_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_READ_EXPANSION", "20")  # the limit is at least 256 MiB for each file
    content = archive(b"[" + b" " * (300 << 20))
    with reading("x.extra-p", len(content)), pytest.raises(FormatError, match="expands to more than 20 times its size"):
        parse_archive(content, "x.extra-p", "x")


@pytest.mark.parametrize("shape", ["(999999999999,)", "(2, 3)", "(-1,)", "('x',)"])
@pytest.mark.parametrize("kind", ["<f8", "|O", "<f1"])
def test_arrays_that_lie(shape: str, kind: str) -> None:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<2d", 1, 2)
    offsets = b"Extra-P INDEX\0\0\0" + struct.pack("<3Q", 2, 16, 16)
    with pytest.raises(FormatError, match=r"not in values/0\.vals"):
        parse_archive(archive(values=b"Extra-P VALUES\0\0" + array, offsets=offsets), "x.extra-p", "x")


def test_another_zip_file() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("../../etc/passwd", "x")
    with pytest.raises(FormatError, match=r"without experiment\.json"):
        parse_archive(file.getvalue(), "x.zip", "x")
