"""A diagnosis as one HTML file that loads nothing."""

from __future__ import annotations

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from quipu.modeling.diagnosis import Diagnosis

from ..text import factor, percent, quantity
from .page import content_hash, read_template

_STYLE = (
    ".findings { border-collapse: collapse; width: 100%; } .findings td, .findings th { text-align: left; "
    "padding: 4px 10px; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }"
)


def html_diagnosis(title: str, place: str, diagnosis: Diagnosis) -> str:
    """Return the findings at a point, which `place` names, as the text of one HTML file."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    style = Markup("\n" + read_template("report.css") + _STYLE)
    environment.filters |= {"factor": factor, "percent": percent, "quantity": quantity}
    return environment.from_string(read_template("diagnosis.html")).render(
        title=title, place=place, diagnosis=diagnosis, style=style, style_hash=content_hash(style)
    )
