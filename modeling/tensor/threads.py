# SPDX-License-Identifier: Apache-2.0
"""Limit the linear algebra library to one thread during a fit.

A fit consists of many small matrix products. If the library uses all cores, its threads synchronize every few
microseconds. This makes a fit several times slower, and even slower on a loaded machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def on_one_thread(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Decorate a function so that the linear algebra library uses one thread during its calls."""

    @wraps(function)
    def limited(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        with threadpool_limits(limits=1, user_api="blas"):
            return function(*arguments, **options)

    return limited
