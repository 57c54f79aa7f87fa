# SPDX-License-Identifier: Apache-2.0
"""The runs of make demo on machines of different sizes."""

from __future__ import annotations

import tomllib
from importlib.util import module_from_spec, spec_from_file_location

import pytest
from example_programs import EXAMPLES

SPEC = spec_from_file_location("demo", EXAMPLES / "demo.py")
assert SPEC is not None and SPEC.loader is not None
demo = module_from_spec(SPEC)
SPEC.loader.exec_module(demo)


@pytest.mark.parametrize(("available", "ranks"), [(1, 1), (2, 2), (3, 2), (4, 4), (64, 4)])
def test_at_most_as_many_ranks_as_processors(available: int, ranks: int) -> None:
    assert demo.ranks_measured(available) == ranks


@pytest.mark.parametrize("name", demo.TARGETS)
def test_targets_are_twice_the_largest_measured_size(name: str) -> None:
    text = (EXAMPLES / name / "campaign.toml").read_text(encoding="utf-8")
    small = tomllib.loads(demo.with_ranks(text, 2))
    assert small["parameters"].keys() == {"n"}
    assert max(small["parameters"]["n"]) * 2 == demo.TARGETS[name]
    assert small["experiment"]["command"] == tomllib.loads(text)["experiment"]["command"].replace("{p}", "2")
