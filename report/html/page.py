# SPDX-License-Identifier: Apache-2.0
"""Write the report and the diagnosis as one HTML file each, from templates, style sheet, scripts and data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from quipu.modeling.behaviour import Behaviour
from quipu.modeling.diagnosis import Diagnosis
from quipu.modeling.experiment import Experiment, FloatArray
from quipu.modeling.printable import printable
from quipu.modeling.priors.slowdown import Slowdown
from quipu.modeling.short_names import shorten

from ..communication_views import Pairs
from ..efficiency_views import EfficiencyView
from ..kernel_views import KernelPanel
from ..model_views import diagnosis_facts
from ..refinement_views import RefinementPanel
from ..text import factor, number, percent, quantity
from ..views import PlacedModel
from .data import report_data

_SHARED = "more ranks than processors"
_SCRIPTS = (
    "text.js",
    "base.js",
    "model.js",
    "interval.js",
    "formula.js",
    "tree.js",
    "plot.js",
    "detail.js",
    "noise.js",
    "diagnosis.js",
    "charts.js",
    "stack.js",
    "scaling.js",
    "surface.js",
    "refinement.js",
    "flame.js",
    "matrix.js",
    "ranks.js",
    "accuracy.js",
    "efficiency.js",
    "overview.js",
    "export.js",
    "main.js",
)
_SHORT_PATH = 60  # columns of a short call path in a table
# JSON escapes for characters that could end the script element, start a tag or a comment, or end a line in old parsers.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_FINDINGS_STYLE = (
    ".findings { border-collapse: collapse; width: 100%; } .findings td, .findings th { text-align: left; "
    "padding: 4px 10px; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }"
)


def html_report(
    experiment: Experiment,
    models: Iterable[PlacedModel],
    *,
    facts: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    target: Mapping[str, float] | None = None,
    observed: Mapping[str, Sequence[Behaviour]] | None = None,
    slow: Sequence[Slowdown] | None = None,
    kernels: KernelPanel | None = None,
    refinement: RefinementPanel | None = None,
    against: Experiment | None = None,
    communication: Mapping[tuple[float, ...], tuple[Pairs, int]] | None = None,
    ranks: Mapping[tuple[float, ...], FloatArray] | None = None,
    efficiency: EfficiencyView | None = None,
    subtitle: str = "",
    footer: str = "",
) -> str:
    """Return the report of an experiment and its models as the text of one HTML file.

    - facts: (label, text) pairs for the head: machine, dates, command.
    - notes: further notes.
    - target: the initial point of the ranking and the diagnosis.
    - observed: for each metric, noise and change of behaviour of each call path.
    - slow: slowdowns (call paths whose time grows faster than their effort); None: no diagnosis.
    - kernels: kernels and their limits. refinement: the iterations of `quipu refine`.
    - against: an earlier experiment with the same call paths and configurations, which the flame graph compares.
    - communication: for each configuration, the communication matrix of one run and its number of ranks.
    - ranks: for each configuration, the exclusive seconds of one run, shape (call paths, ranks).
    - efficiency: efficiencies of the same call paths.
    - subtitle, footer: texts of the page.

    The content security policy of the page allows only the script and the style in the page.
    """
    data = report_data(
        experiment, models, target or {}, observed or {}, slow, against, refinement, communication, ranks, efficiency
    )
    script = Markup('\n(() => {\n"use strict";\n' + "".join(read_template(name) for name in _SCRIPTS) + "})();\n")
    counts = [max(column) for column in zip(*data["repetitions"].values(), strict=True)] or [0] * len(data["points"])
    points = [
        ([number(float(value)) for value in point], count, "loaded machine" if loaded else _SHARED if shared else "")
        for point, count, shared, loaded in zip(
            data["points"], counts, data["oversubscribed"], data["loaded"], strict=True
        )
    ]
    return render(
        "report.html",
        title=experiment.name,
        subtitle=subtitle,
        facts=facts,
        notes=[*experiment.notes, *notes],
        parameters=experiment.parameters,
        points=points,
        oversubscribed=any(data["oversubscribed"]),
        kernels=kernels,
        refinement=refinement,
        data=Markup(script_json(data)),
        script=script,
        script_hash=content_hash(script),
        footer=footer
        or "Written by Quipu. Values are exclusive per call path; inclusive values contain the "
        "values of all call paths below.",
    )


def html_diagnosis(title: str, place: str, diagnosis: Diagnosis, notes: Sequence[str] = ()) -> str:
    """Return a diagnosis as the text of one HTML file. place: the target as text. notes: further notes."""
    content = {"facts": diagnosis_facts(place, diagnosis), "notes": [*notes, *diagnosis.notes]}
    return render("diagnosis.html", _FINDINGS_STYLE, title=title, place=place, diagnosis=diagnosis, **content)


def render(template: str, more_style: str = "", **content: Any) -> str:
    """Return the text of an HTML file from a template, with the style of the report and further style rules."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"factor": factor, "percent": percent, "quantity": quantity, "arrows": _arrows}
    environment.filters["short"] = partial(shorten, width=_SHORT_PATH)
    style = Markup("\n" + read_template("report.css") + more_style)
    page = environment.from_string(read_template(template))
    return printable(page.render(style=style, style_hash=content_hash(style), **content))


def _arrows(path: str) -> str:
    """Return a call path with ` → ` instead of `->`, as in the whole page; a browser can break lines there."""
    return re.sub("(?<!operator)->", " → ", path)


def script_json(data: Any) -> str:
    """Return data as JSON text for a script element. No string in the data can end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES).encode("utf-8", "replace").decode("utf-8")


def content_hash(content: str) -> str:
    """Return the hash of a script or a style, as a content security policy needs it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def read_template(name: str) -> str:
    """Return the text of a file in the folder `templates`."""
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
