# SPDX-License-Identifier: Apache-2.0
"""The progress of long work: functions report it here, and a view may listen and show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Listener = Callable[[str, int, int], None]
"""Called with what is done, how many steps are done, and of how many; the last call has both numbers equal."""

Step = TypeVar("Step")
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def shown_by(listener: Listener) -> Iterator[None]:
    """Say to a listener how far work within the block is."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def shares(what: str) -> Iterator[Callable[[float], None]]:
    """Give a function that says which share of a work is done, in percent; steps within the work say nothing."""
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
    """Yield steps, saying before each how many are done; the end is said however the work ends."""
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
