// SPDX-License-Identifier: Apache-2.0
// Shows formulas of models as elements of the page.

// Returns a coefficient with as many digits as modeling/pmnf/model/text.py writes: its digits, and its exponent of ten.
function coefficient(value) {
  const [mantissa, exponent] = (Number.isInteger(value) && value < 1e6 ? decimal(value, 0) : general(value, 4)).split("e");
  return exponent ? [mantissa + "·10", String(Number(exponent))] : [mantissa, null];
}

// Number of terms of a sum over many call paths that are shown at first. Such a sum may have dozens of terms.
const SHOWN_TERMS = 3;

// For the order of terms, 2^n counts as a power of n with this exponent, which is above all others
// (modeling/pmnf/model/term.py).
const LARGEST_POWER = 16;

// Returns a formula as an element with superscripts. Only the first `shown` terms are visible; a button shows the others.
function formulaNode(model, shown = Infinity) {
  const whole = element("span", { class: "math" });
  let out = whole;
  const power = (f) => (f.steps?.itself ? LARGEST_POWER * f.i * Math.log2(f.steps.base) : f.i * (f.call?.order ?? 1));
  const order = (term) => term.factors.reduce((sum, f) => sum + power(f) + 0.01 * f.j, 0);
  const terms = [...model.terms].sort((a, b) => order(b) - order(a));
  let first = true;
  const add = (coefficientOf, all) => {
    const [value, factors, blocks] = withBlocks(coefficientOf, all);
    const sign = value < 0 ? (first ? "−" : " − ") : first ? "" : " + ";
    out.append(sign);
    first = false;
    const size = Math.abs(value);
    const [text, exponent] = coefficient(size);
    const one = size === 1;
    if (!one || (!factors.length && !blocks.length)) {
      out.append(text);
      if (exponent !== null) out.append(element("sup", {}, exponent.replace("-", "−")));
    }
    const above = factors.filter((f) => f.i >= 0);
    const below = factors.filter((f) => f.i < 0);
    const tops = [...above.flatMap(factorParts), ...below.flatMap((f) => factorParts({ ...f, i: 0 })), ...blocks.map(blockParts)];
    if (!tops.length && factors.length && one) out.append("1");
    join(out, tops, !one || (!factors.length && !blocks.length));
    const bottoms = below.flatMap((f) => factorParts({ ...f, i: -f.i, text: f.text.replace("-", ""), j: 0, s: 0 }));
    if (bottoms.length) out.append(bottoms.length > 1 ? "/(" : "/");
    join(out, bottoms, false);
    if (bottoms.length > 1) out.append(")");
  };
  const more = terms.length > shown + 1 ? terms.length - shown : 0;
  terms.forEach((term, at) => {
    if (more && at === shown) out = behindButton(whole, `${more} more terms`);
    add(term.c, term.factors);
  });
  if (model.constant !== 0 || !terms.length) add(model.constant, []);
  return whole;
}

// Appends a button and a hidden element to `node`, and returns the hidden element. The button shows this element.
function behindButton(node, text) {
  const rest = element("span", { hidden: "" });
  const button = element("button", { type: "button", class: "link more", "aria-expanded": "false" }, " + " + text);
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    rest.hidden = !rest.hidden;
    button.setAttribute("aria-expanded", String(!rest.hidden));
    button.textContent = rest.hidden ? " + " + text : "fewer terms";
  });
  node.append(rest, " ", button);
  return rest;
}

function join(out, parts, started) {
  for (const part of parts) {
    if (started) out.append("·");
    out.append(...part);
    started = true;
  }
}

// Returns the parts in which a term is shown: [coefficient, factors, blocks]. The product in blocks is shown as a number of
// blocks (see `blockParts`), so the coefficient and the other factors change accordingly.
function withBlocks(value, all) {
  const blocks = all.filter((f) => f.blocks).map((f) => f.blocks);
  const left = new Map(all.filter((f) => !f.blocks).map((f) => [f.number, f]));
  const byVariable = ({ p, axis, steps }) => [...left.values()].find((f) => f.p === p && !axis && !f.axis && !steps && !f.steps);
  let rest = value;
  for (const { size, power, product } of blocks) {
    rest *= size ** power;
    for (const f of product) {
      const own = byVariable(f) ?? { ...f, i: 0, j: 0, s: 0 };
      const i = own.i - f.i * power;
      left.set(own.number, { ...own, i, text: exponentText(i) });
    }
  }
  return [rest, [...left.values()].filter((f) => f.i || f.j || f.s || f.steps), blocks];
}

// Returns an exponent as text, as a fraction with a small denominator if possible ("2/3").
function exponentText(i) {
  const below = [1, 2, 3, 4, 5, 6].find((d) => Math.abs(i * d - Math.round(i * d)) < 1e-9) ?? 1;
  return below === 1 ? String(Math.round(i)) : `${Math.round(i * below)}/${below}`;
}

// Returns the parts of the formula for a number of blocks, such as ⌈n²/(64·p)⌉.
function blockParts({ size, power, product }) {
  const tops = product.filter((f) => f.i > 0).flatMap(factorParts);
  const bottoms = product.filter((f) => f.i < 0).flatMap((f) => factorParts({ ...f, i: -f.i, text: f.text.replace("-", "") }));
  const out = element("span", {}, "⌈");
  join(out, tops, false);
  out.append(bottoms.length ? "/(" : "/");
  join(out, [[String(size)], ...bottoms], false);
  out.append(bottoms.length ? ")⌉" : "⌉");
  return [out, ...(power === 1 ? [] : [element("sup", {}, String(power))])];
}

function stepParts({ p, i, text, j, steps: { base, unit, down, itself } }) {
  const [left, right] = down ? "⌊⌋" : "⌈⌉";
  const log = "log" + [...String(base)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
  const number = itself ? DATA.parameters[p] : `${left}${log}(${DATA.parameters[p]}${unit > 1 ? `/${unit}` : ""})${right}`;
  const parts = [];
  if (i) parts.push([String(base), element("sup", {}, i === 1 ? number : `${text}·${number}`)]);
  if (j) parts.push([number, ...(j === 1 ? [] : [element("sup", {}, String(j))])]);
  return parts;
}

// Returns the parts of a function of a sum, in the form of modeling/pmnf/model/text.py.
function callParts({ kind, numbers, argument }) {
  const inside = formulaNode({ constant: 0, terms: argument });
  const [first, shift, power] = numbers;
  if (kind === "ceil") return ["⌈", inside, "⌉"];
  if (kind === "floor") return ["⌊", inside, "⌋"];
  if (kind === "above") return ["[", inside, `>${first}]`];
  if (kind === "below") return ["[", inside, `<${first}]`];
  if (kind === "positive") return ["max(", inside, ", 0)"];
  if (kind === "power") return ["(", inside, ")", element("sup", {}, exponentText(first))];
  if (kind === "log2") return ["log₂(", inside, ")"];
  const each = shift ? `(m${shift > 0 ? "+" : "−"}${Math.abs(shift)})` : "m";
  return [`Σ(m=${first}..`, inside, `: ${each}`, ...(power === 1 ? [] : [element("sup", {}, String(power))]), ")"];
}

// Returns the parts of one factor. Each part is a list of texts and elements.
function factorParts(f) {
  if (f.call) return f.i ? [[...callParts(f.call), ...(f.i === 1 ? [] : [element("sup", {}, f.text)])]] : [];
  if (f.steps) return stepParts(f);
  const name = f.axis ? f.axis[3] : DATA.parameters[f.p];
  const parts = [];
  if (f.i) parts.push([name, ...(f.i === 1 ? [] : [element("sup", {}, f.text.replace("log2", "log₂"))])]);
  if (f.j) parts.push(["log₂", ...(f.j === 1 ? [] : [element("sup", {}, String(f.j))]), `(${name})`]);
  for (let k = 0; k < f.s; k++) parts.push([`(${name}−1)/${name}`]);
  if (f.s < 0) parts.push([`[${name}>1]`]);
  return parts;
}
