# SPDX-License-Identifier: Apache-2.0
"""Headings of columns of texts. The class of a heading determines how a table shortens the column (columns.py)."""

from __future__ import annotations


class NameTitle(str):
    """The heading of a column of names, which are shortened but stay distinct."""

    least_width = 24


class FormulaTitle(str):
    """The heading of a column of formulas, which lose their last terms; the terms that grow fastest are first."""

    least_width = 18


class RemarkTitle(str):
    """The heading of a column of remarks, which are wrapped."""

    least_width = 14


class BasisTitle(str):
    """The heading of a column with the basis of models (the data from which they were made)."""

    least_width = 22


CALL_PATH, REGION = NameTitle("call path"), NameTitle("region")
FUNCTION, KERNEL = NameTitle("function"), NameTitle("kernel")
MODEL, BELOW, ABOVE = FormulaTitle("model"), FormulaTitle("below"), FormulaTitle("above")
TIME_FROM_EFFORT = FormulaTitle("time from effort")
NOTE, REASON, LIMITED_BY = RemarkTitle("note"), RemarkTitle("reason"), RemarkTitle("limited by")
BASIS = BasisTitle("basis")


def least_width(title: str, otherwise: int) -> int:
    """Return the smallest width of an elastic column. otherwise: the width for a plain heading."""
    if isinstance(title, NameTitle | FormulaTitle | RemarkTitle | BasisTitle):
        return title.least_width
    return otherwise
