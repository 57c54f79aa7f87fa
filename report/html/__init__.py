# SPDX-License-Identifier: Apache-2.0
"""Write the report, a diagnosis, and the effects of a tensor model, each as one HTML file."""

from __future__ import annotations

from .data import placed_models, report_data
from .page import html_diagnosis, html_report
from .tensor import html_effects

__all__ = ["html_diagnosis", "html_effects", "html_report", "placed_models", "report_data"]
