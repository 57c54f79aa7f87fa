# SPDX-License-Identifier: Apache-2.0
"""Report the progress of long work to a listener, which may show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Listener = Callable[[str, int, int], None]
"""A function of a description of the work, the number of finished steps, and the number of all steps. Both numbers are
equal at the end."""

Step = TypeVar("Step")
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def shown_by(listener: Listener) -> Iterator[None]:
    """Report the progress of all work inside of the block to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def shares(what: str) -> Iterator[Callable[[float], None]]:
    """Yield a function that reports the finished share (0 to 1) of the work in the block.

    `steps` inside of the block report nothing.
    """
    listener = _listener.get()
    if listener is None:
        yield lambda share: None
        return
    token = _listener.set(None)
    try:
        yield lambda share: listener(f"{what}, percent", min(99, int(100.0 * share)), 100)
    finally:
        _listener.reset(token)
        listener(f"{what}, percent", 100, 100)


def steps(what: str, all_steps: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps of some work. Report the number of finished steps before each step and at the end."""
    listener = _listener.get()
    if listener is None:
        yield from all_steps
        return
    try:
        for done, step in enumerate(all_steps):
            listener(what, done, len(all_steps))
            yield step
    finally:
        listener(what, len(all_steps), len(all_steps))
