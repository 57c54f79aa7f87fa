"""Deciding what to measure next from models."""

from __future__ import annotations

from .selection import Choice, Selection, select

__all__ = ["Choice", "Selection", "select"]
