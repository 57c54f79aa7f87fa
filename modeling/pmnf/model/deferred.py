# SPDX-License-Identifier: Apache-2.0
"""Tuples that are made when they are first asked for.

Most objects of a fitted model are those of its doubt: the numbers of its covariance, its alternatives and their terms.
Who compares thousands of models, prints or evaluates them never looks at these, so that they stay in the arrays of the
fit until somebody does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

Item_co = TypeVar("Item_co", covariant=True)


class Deferred(Sequence[Item_co]):
    """A tuple `make(number)`, made once; it compares, prints and is pickled as the tuple."""

    __slots__ = ("_known", "_make", "_number")

    def __init__(self, make: Callable[[int], tuple[Item_co, ...]], number: int) -> None:
        self._make: Callable[[int], tuple[Item_co, ...]] | None = make
        self._number = number

    @property
    def made(self) -> tuple[Item_co, ...]:
        """The tuple."""
        if self._make is not None:
            self._known = self._make(self._number)
            self._make = None  # arrays that no model needs any more are freed
        return self._known

    @overload
    def __getitem__(self, index: int) -> Item_co: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item_co, ...]: ...

    def __getitem__(self, index: int | slice) -> Item_co | tuple[Item_co, ...]:
        """Return what the tuple has there."""
        return self.made[index]

    def __len__(self) -> int:
        """Return the length of the tuple."""
        return len(self.made)

    def __eq__(self, other: object) -> bool:
        """Whether the other one is the same tuple."""
        return self.made == (other.made if isinstance(other, Deferred) else other)

    def __hash__(self) -> int:
        """Return what the tuple has."""
        return hash(self.made)

    def __repr__(self) -> str:
        """Return the tuple as text."""
        return repr(self.made)

    def __reduce__(self) -> tuple[Any, ...]:
        """Say that the tuple is kept: a process that gets it has no arrays."""
        return tuple, (self.made,)
