"""Deciding what to measure next from models."""

from __future__ import annotations

from .selection import Choice, RegionSelection, select

__all__ = ["Choice", "RegionSelection", "select"]
