"""The report in one HTML file."""

from __future__ import annotations

from .data import placed_models, report_data
from .page import html_report

__all__ = ["html_report", "placed_models", "report_data"]
