# SPDX-License-Identifier: Apache-2.0
"""Tensor models from strangers: whatever the arrays and the document hold, a result or one error of one line."""

from __future__ import annotations

import hashlib
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quipu.agent.cli.main import run_command_line
from quipu.modeling.tensor.columns import fit_columns
from quipu.modeling.tensor.storage import stored

CASES = 60
VALUES: tuple[Any, ...] = (
    None,
    -1,
    0,
    1e308,
    10**9,
    "x",
    "",
    [],
    {},
    [[]],
    True,
    [1e300] * 3,
    "\x1b[2J",
    "a" * 5000,
    float("nan"),
)
NUMBERS = (np.nan, np.inf, -1e308, 1e308, 0.0, -1.0, 1e-320)


@pytest.fixture(scope="module")
def model() -> tuple[dict[str, Any], bytes]:
    sizes, ranks = np.repeat([10.0, 20.0, 40.0, 80.0], 8), np.tile([1.0, 2.0, 4.0, 8.0], 8)
    layout = ["row", "col"] * 16
    times = sizes / ranks * np.tile([1.0, 1.5], 16)
    columns = {"n": sizes, "p": ranks, "layout": layout, "time": times}
    document, content = stored(fit_columns(columns, "time", time_budget=0.02)[0])
    return json.loads(json.dumps(document)), content


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Generate the ways to all values in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, own in inside:
        yield (*above, key)
        yield from places(own, (*above, key))


def changed(array: Any, chance: random.Random) -> Any:
    """Return an array with another shape, type or number."""
    how = chance.randrange(4)
    if how == 0:
        array = array.copy()
        with np.errstate(over="ignore"):
            array.flat[chance.randrange(array.size)] = chance.choice(NUMBERS)
        return array
    return (array[:0], np.zeros((2,) * chance.randrange(4), array.dtype), array.astype(np.int8))[how - 1]


@pytest.mark.parametrize("seed", range(CASES))
def test_a_changed_model_is_a_result_or_one_error(
    seed: int, model: tuple[dict[str, Any], bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(seed)
    document, arrays = json.loads(json.dumps(model[0])), dict(np.load(io.BytesIO(model[1])))
    if chance.random() < 0.5:
        *way, last = chance.choice([place for place in places(document) if place[0] != "sha256"])
        holder = document
        for key in way:
            holder = holder[key]
        holder[last] = chance.choice(VALUES)
    else:
        name = chance.choice(sorted(arrays))
        arrays[name] = changed(arrays[name], chance)
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    document["sha256"] = hashlib.sha256(packed.getvalue()).hexdigest()
    (tmp_path / "m.json").write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "m.npz").write_bytes(packed.getvalue())
    file = str(tmp_path / "m.json")
    for words in (("predict", file, "--at", "n=15,p=2,layout=row"), ("tune", file), ("explain", file)):
        code = run_command_line(["tensor", *words])
        printed = capsys.readouterr()
        assert code == 0 or printed.err.count("quipu: error: ") == printed.err.count("\n") == 1, printed.err
        assert "\x1b" not in printed.out + printed.err


def test_arrays_without_a_dimension_are_refused(
    model: tuple[dict[str, Any], bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays: dict[str, Any] = {name: np.zeros((), array.dtype) for name, array in np.load(io.BytesIO(model[1])).items()}
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    document = {**model[0], "sha256": hashlib.sha256(packed.getvalue()).hexdigest()}
    (tmp_path / "m.json").write_text(json.dumps(document), encoding="utf-8")
    (tmp_path / "m.npz").write_bytes(packed.getvalue())
    assert run_command_line(["tensor", "explain", str(tmp_path / "m.json")]) == 1
    assert "in its .npz is not a list of numbers: restore both files, or fit again" in capsys.readouterr().err
