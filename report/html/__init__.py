"""The report, and a diagnosis, in one HTML file each."""

from __future__ import annotations

from .data import placed_models, report_data
from .page import html_diagnosis, html_report

__all__ = ["html_diagnosis", "html_report", "placed_models", "report_data"]
