# SPDX-License-Identifier: Apache-2.0
"""Fits of tensor models take one thread of the linear algebra library, and leave its number as it was."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from quipu.modeling.tensor import TensorModel
from quipu.modeling.tensor.threads import on_one_thread
from threadpoolctl import threadpool_info, threadpool_limits


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_one_thread_while_a_function_runs() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        assert on_one_thread(threads)() == {1}
        assert threads() == before


def test_fits_run_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    x = np.random.default_rng(1).uniform(1.0, 9.0, (40, 2))

    def noted(*_: object, **__: object) -> None:
        seen.append(threads())
        raise StopIteration

    monkeypatch.setattr("quipu.modeling.tensor.model.modes_of", noted)
    with pytest.raises(StopIteration):
        TensorModel().fit(x, x.sum(axis=1))
    assert seen == [{1}]
    assert list(inspect.signature(TensorModel.fit).parameters) == ["self", "X", "y"]
