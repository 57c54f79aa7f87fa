# SPDX-License-Identifier: Apache-2.0
"""Python and the script of the report write the same texts for the same numbers."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import asdict
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
from quipu.modeling.pmnf.model import Blocks, Factor, Function, Model, Term
from quipu.modeling.pmnf.model.steps import BASES, Steps
from quipu.modeling.pmnf.model.text import plain
from quipu.modeling.process_grid import RULES, extents
from quipu.report.html.page import read_template
from quipu.report.text import factor, number, percent, point_text, quantity

from .browser import document

FUNCTIONS = [("ceil", ()), ("floor", ()), ("above", (4.0,)), ("below", (4.0,)), ("positive", ()), ("power", (0.5,))]
FUNCTIONS += [("levels", (2.0, -1.0, 2.0)), ("levels", (1.0, 0.0, 1.0))]
_UNITS = ("1", "s", "B", "")
_SCRIPT = """
const DATA = { parameters: ["p"] };
const element = (name, attributes, ...content) => {
  const node = document.createElement(name);
  node.append(...content);
  return node;
};
const textOf = (model) => formulaNode(model).textContent;
const rows = JSON.parse(document.getElementById("values").textContent);
const special = {nan: NaN, inf: Infinity, "-inf": -Infinity};
const texts = rows.map(([kind, text, detail]) => {
  const value = text in special ? special[text] : Number(text);
  if (kind === "quantity") return quantity(value, detail);
  if (kind === "percent") return percent(value, detail);
  if (kind === "factor") return factorText(value);
  if (kind === "number") return numberText(value);
  if (kind === "extent") return numberText(extentOf(detail, value));
  if (kind === "product") return numberText(productOf(unpackProduct(detail), factorsAt([value])));
  if (kind === "blocks") return numberText(Number(productOf(unpackProduct(detail), factorsAt([value])).toPrecision(9)));
  if (kind === "formula") return textOf({ constant: value, terms: [{ c: 3, ...unpackProduct(detail) }] });
  if (kind === "steps") return numberText(stepsTo(detail, value));
  if (kind === "point") return pointText(["p", "n"], [value, 3]);
  const [mantissa, exponent] = coefficient(value);
  return mantissa + (exponent || "");
});
document.getElementById("values").textContent = JSON.stringify(texts);
"""


def values() -> list[float]:
    """Return zeros, ends of the range, halves that lie between two texts, and both sides of every boundary."""
    boundaries = [0.9995, 9.995, 99.95, 999.5, 9999.5, 99999.5, 1e-3, 1e-4, 1e-5, 0.5, 1, 1e15, 2.0**53]
    scales = [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18]
    found = [0.0, -0.0, 5e-324, 2.2e-308, 1.7e308, 1e100, 1.234e-200]
    for middle in {boundary * scale for boundary in boundaries for scale in scales}:
        found += [math.nextafter(middle, 0), middle, math.nextafter(middle, math.inf)]
    halves = [
        0.5,
        1.5,
        2.5,
        10000.5,
        10001.5,
        12.25,
        12.75,
        1.125,
        1.375,
        0.0625,
        100.5,
        101.5,
        999.5,
        1250.0,
        100050.0,
    ]
    halves += [100150.0, 1.125e18, 1.375e18, 1234565.0, 1234575.0, 0.00390625, 0.1225, 0.8775, 16384.5, 23.45, 1.005]
    found += [*halves, 3.14159265, 271828.1828, 1e22, 65536.0, 1e6, 123456.7, 0.1, 1 / 3, 2 / 3]
    return [*found, *(-value for value in found)]


def test_the_same_digits_in_python_and_in_the_page(tmp_path: Path) -> None:
    rows: list[tuple[str, float, object, str]] = []
    for value in values():
        rows += [("quantity", value, unit, quantity(value, unit)) for unit in _UNITS]
        rows += [("factor", value, None, factor(value)), ("number", value, None, number(value))]
        rows.append(("point", value, None, point_text(("p", "n"), (value, 3.0))))
        if abs(value) < 1e18:
            rows += [("percent", value, decimals, percent(value, decimals)) for decimals in (0, 1)]
        if value > 0:
            text = re.sub(r"e([+-]\d+)", lambda power: f"·10{int(power[1])}", plain(value, ()))
            rows.append(("coefficient", value, None, text))
    for value in (math.nan, math.inf, -math.inf):
        rows += [("quantity", value, unit, quantity(value, unit)) for unit in _UNITS]
        rows.append(("percent", value, 1, percent(value)))
    grids = [(rule, dimensions) for rule in RULES for dimensions in (2, 3)]
    grids += [("balanced, smallest first, but 2x1x3 and 5x2x2", 3), ("prime factors in turn, but 1x4", 2)]
    for (rule, dimensions), processes in product(grids, (*range(1, 40), 72, 97, 360, 1024, 4096, 10.5)):
        for index, extent in enumerate(extents(rule, processes, dimensions)):
            rows.append(("extent", float(processes), [rule, dimensions, index], number(extent)))
    for base, unit, down, value in product(BASES, (1, 3, 7, 32), (False, True), (1, 3, 7, 8, 28, 29, 56, 64, 1000.5)):
        steps = Steps(base, unit, down)
        rows.append(("steps", float(value), asdict(steps), number(float(steps.number(np.array([value]))[0]))))
    for base, value in product(BASES, (0.0, 1.0, 7.5, 20.0)):
        doublings = Steps(base, itself=True)
        rows.append(("steps", value, asdict(doublings), number(float(doublings.number(np.array([value]))[0]))))
    for (exponent, log, shares), value in product(((1, 0, 0), (0, 0, 2), (0, 0, -1), (2, 1, -1)), (1.0, 2.0, 7.0)):
        own = Factor("p", Fraction(exponent), log, max(shares, 0), several=shares < 0)
        packed = [[0, str(exponent), log, shares]]
        rows.append(("product", value, packed, number(float(own.evaluate(np.array([value]))[0]))))
    for size, power, above, value in product((7, 64), (1, 2), (1, 3), (1.0, 63.0, 64.0, 65.0, 1000.5)):
        blocks = Factor("p", blocks=Blocks(size, (Factor("p", Fraction(1)),), power))
        term = Term(3.0, (Factor("p", Fraction(above)), blocks))
        packed = [[0, str(above), 0, 0], [0, "0", 0, 0, {"size": size, "power": power, "product": [[0, "1", 0, 0]]}]]
        at = float(term.evaluate({"p": np.array([value])}, (1,))[0]) / 3.0
        rows.append(("blocks", value, packed, number(float(f"{at:.9g}"))))
        text = re.sub("[²³]", lambda raised: str("¹²³".index(raised[0]) + 1), str(Model(("p",), value, (term,))))
        rows.append(("formula", value, packed, text))
    for (kind, numbers), power, above, value in product(FUNCTIONS, (1, 2), (1, 3), (1.0, 7.0, 63.0, 64.0, 96.0)):
        argument = (Term(0.5, (Factor("p", Fraction(1)),)), Term(-3.0, ()))
        own = Factor("p", Fraction(power), function=Function(kind, argument, numbers))
        term = Term(3.0, (Factor("p", Fraction(above)), own))
        about = {"kind": kind, "numbers": numbers, "argument": [[0.5, [[0, "1", 0, 0]]], [-3, []]], "order": 1}
        packed = [[0, str(above), 0, 0], [0, str(power), 0, 0, about]]
        at = float(term.evaluate({"p": np.array([value])}, (1,))[0]) / 3.0
        rows.append(("blocks", value, packed, number(float(f"{at:.9g}"))))
        text = str(Model(("p",), value, (term,))).translate(str.maketrans("²³", "23"))
        text = text.replace("^(1/2)", "1/2").replace("log2", "log₂").replace("m-1", "m−1")
        rows.append(("formula", value, packed, text.replace(" - 3", " − 3")))
    script = "".join(map(read_template, ("text.js", "model.js", "formula.js"))) + _SCRIPT
    data = html.escape(json.dumps([(kind, repr(value), detail) for kind, value, detail, _ in rows]))
    page = tmp_path / "values.html"
    page.write_text(f'<meta charset="utf-8"><p id="values">{data}</p><script>{script}</script>', encoding="utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    shown = json.loads(html.unescape(dom[dom.index('<p id="values">') + 15 : dom.index("</p>")]))
    wrong = [(*row, text) for row, text in zip(rows, shown, strict=True) if row[3] != text]
    assert len(rows) > 2000
    assert wrong == []
