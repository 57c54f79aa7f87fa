# SPDX-License-Identifier: Apache-2.0
"""Titles of columns of texts. The kind of a title determines how a table shortens the column."""

from __future__ import annotations


class NameTitle(str):
    """The title of a column of names, which are shortened and stay distinct."""

    least_width = 24


class FormulaTitle(str):
    """The title of a column of formulas, which keep the terms that grow fastest."""

    least_width = 18


class RemarkTitle(str):
    """The title of a column of remarks, which are wrapped."""

    least_width = 14


class BasisTitle(str):
    """The title of a column with the basis of models."""

    least_width = 22


CALL_PATH, REGION = NameTitle("call path"), NameTitle("region")
FUNCTION, KERNEL = NameTitle("function"), NameTitle("kernel")
MODEL, BELOW, ABOVE = FormulaTitle("model"), FormulaTitle("below"), FormulaTitle("above")
TIME_FROM_EFFORT = FormulaTitle("time from effort")
NOTE, REASON, LIMITED_BY = RemarkTitle("note"), RemarkTitle("reason"), RemarkTitle("limited by")
BASIS = BasisTitle("basis")


def least_width(title: str, otherwise: int) -> int:
    """Return the least width of a column that can be narrower than its texts."""
    if isinstance(title, NameTitle | FormulaTitle | RemarkTitle | BasisTitle):
        return title.least_width
    return otherwise
