"""The Talpas format of Extra-P: one measurement per line, with semicolons where JSON has commas."""

from __future__ import annotations

import re

from quipu.modeling.experiment import Experiment

from .content import load_json
from .json_lines import LineCollector

# Strings as they are, so that a semicolon in the name of a call path stays.
_STRING_OR_SEMICOLON = re.compile(r'"(?:[^"\\]|\\.)*"|;')


def parse_talpas(text: str, source: object, name: str) -> Experiment:
    """Return the experiment in a Talpas text.

    A line is {"parameters":{"p":4};"metric":"time";"callpath":"main->foo";"value":1.0}. Lines of the same point are
    repetitions. Raises FormatError naming the line at fault.
    """
    lines = LineCollector(source, "parameters")
    for count, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            lines.add(load_json(as_json(line), source, count), count)
    return lines.experiment(name)


def as_json(line: str) -> str:
    """Return a line with commas for semicolons, except in strings."""
    return _STRING_OR_SEMICOLON.sub(lambda match: "," if match[0] == ";" else match[0], line)
