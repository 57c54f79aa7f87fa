# SPDX-License-Identifier: Apache-2.0
"""Tuples that are computed at their first use.

Most objects of a fitted model describe its uncertainty: covariance, alternatives, and terms of alternatives. Many
callers compare, print or evaluate thousands of models without using them. They are therefore created from the arrays of
the fit only when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

Item_co = TypeVar("Item_co", covariant=True)


class Deferred(Sequence[Item_co]):
    """The tuple `make(number)`, computed at its first use. It compares, prints and is pickled like a tuple."""

    __slots__ = ("_known", "_make", "_number")

    def __init__(self, make: Callable[[int], tuple[Item_co, ...]], number: int) -> None:
        self._make: Callable[[int], tuple[Item_co, ...]] | None = make
        self._number = number

    @property
    def made(self) -> tuple[Item_co, ...]:
        """Return the tuple, computed at the first call."""
        if self._make is not None:
            self._known = self._make(self._number)
            self._make = None  # free arrays that no model needs any more
        return self._known

    @overload
    def __getitem__(self, index: int) -> Item_co: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item_co, ...]: ...

    def __getitem__(self, index: int | slice) -> Item_co | tuple[Item_co, ...]:
        """Return an element or slice of the tuple."""
        return self.made[index]

    def __len__(self) -> int:
        """Return the length of the tuple."""
        return len(self.made)

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is an equal tuple, deferred or not."""
        return self.made == (other.made if isinstance(other, Deferred) else other)

    def __hash__(self) -> int:
        """Return the hash of the tuple."""
        return hash(self.made)

    def __repr__(self) -> str:
        """Return the tuple as text."""
        return repr(self.made)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain tuple, because another process does not have the arrays."""
        return tuple, (self.made,)
