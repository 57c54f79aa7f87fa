# SPDX-License-Identifier: Apache-2.0
"""The progress of long work: functions report it here, and a listener may show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Listener = Callable[[str, int, int], None]
"""A function of a description, the number of finished steps and of all steps; equal numbers in the last call."""

Step = TypeVar("Step")
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def shown_by(listener: Listener) -> Iterator[None]:
    """Report the progress of work inside of the block to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def shares(what: str) -> Iterator[Callable[[float], None]]:
    """Yield a function that reports the finished share of a work (percent); steps inside of the work do not report."""
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
    """Yield steps, and report the number of finished steps before each; the end is always reported."""
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
