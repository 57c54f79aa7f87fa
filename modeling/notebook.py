# SPDX-License-Identifier: Apache-2.0
"""Make tables for notebooks: data frames of pandas, and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .errors import EnvironmentProblem
from .printable import one_line

if TYPE_CHECKING:
    import pandas
    from numpy.typing import NDArray


MOST_ROWS = 50
"""Largest number of call paths in a table of a notebook. The methods `frame` return all call paths."""
_NAME = 80  # largest width of a call path in such a table (characters)


class Described(Protocol):
    """The attributes of a metric that a summary shows."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def unit(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def description(self) -> str: ...  # noqa: D102


def data_frame(index: Sequence[tuple[str, NDArray[Any]]], columns: Mapping[str, NDArray[Any]]) -> pandas.DataFrame:
    """Return a data frame. index: pairs (name, values) of its levels; columns: by name; all of shape (rows,).

    Raises EnvironmentProblem without pandas.
    """
    try:
        import pandas
    except ImportError as error:
        raise EnvironmentProblem("tables of pandas need it: pip install 'quipu[notebook]'") from error
    names = [name for name, _ in index]
    if len(index) == 1:
        return pandas.DataFrame(dict(columns), index=pandas.Index(index[0][1], name=names[0]))
    return pandas.DataFrame(dict(columns), index=pandas.MultiIndex.from_arrays([x for _, x in index], names=names))


def summary_html(title: str, facts: Iterable[tuple[str, str]], metrics: Iterable[Described]) -> str:
    """Return a title, facts as pairs (label, text), and a table of metrics as HTML; all texts are escaped."""
    rows = [(one.name, one.unit, one.kind, one.description) for one in metrics]
    return table_html(title, facts, ("metric", "unit", "kind", "what it is"), rows)


def short_paths(labels: Sequence[str]) -> list[str]:
    """Return shortened call paths for tables of a notebook. Distinct call paths remain distinct."""
    from .short_names import shorten_apart  # imported here because every command imports this file

    return shorten_apart(labels, _NAME)


def table_html(
    title: str, facts: Iterable[tuple[str, str]], columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    """Return a title, facts as pairs (label, text), and a table as HTML; all texts are escaped."""
    head = "".join(f"<tr><th>{_text(label)}</th><td>{_text(text)}</td></tr>" for label, text in facts)
    body = "".join(f"<tr>{''.join(f'<td>{_text(text)}</td>' for text in row)}</tr>" for row in rows)
    names = "".join(f"<th>{_text(name)}</th>" for name in columns)
    return (
        f"<div><strong>{_text(title)}</strong><table>{head}</table>"
        f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _text(text: str) -> str:
    from html import escape  # imported here because every command imports this file

    return escape(one_line(text))
