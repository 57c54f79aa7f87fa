# SPDX-License-Identifier: Apache-2.0
"""One thread for the many small products of matrices of a fit, where the linear algebra library takes all cores.

Threads that wait for each other between products of microseconds make a fit several times as long, and many more on a
machine with other work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def on_one_thread(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Return the function with one thread in libraries of linear algebra for as long as it runs."""

    @wraps(function)
    def limited(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        with threadpool_limits(limits=1, user_api="blas"):
            return function(*arguments, **options)

    return limited
