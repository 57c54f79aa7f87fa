// SPDX-License-Identifier: Apache-2.0
// Shows the noise of repetitions, and changes of behaviour, next to the models.

const noiseOf = new Map();
for (const [metric, entry] of Object.entries(DATA.noise))
  for (const [path, range, low, high, worst, place, warning] of entry.paths) noiseOf.set(metric + "\n" + path, { range, low, high, worst, place, warning });

const changesOf = new Map();
for (const raw of DATA.changes)
  changesOf.set(raw.metric + "\n" + raw.path, { ...raw, below: unpackModel(raw.below), above: unpackModel(raw.above) });

const noiseAt = (metric, path) => noiseOf.get(metric + "\n" + path) || null;
const changeAt = (metric, path) => changesOf.get(metric + "\n" + path) || null;

function betweenText(change) {
  const name = DATA.parameters[change.parameter];
  return `from ${name}=${numberText(change.last)} to ${name}=${numberText(change.first)}`;
}

// Returns the lines about noise and behaviour below a model in the table of a call path.
function behaviourLines(metric, path) {
  const lines = [];
  const change = changeAt(metric, path);
  if (change) {
    const line = element("div", { class: "status outside change" }, `changes ${betweenText(change)}: `);
    line.append(formulaNode(change.below), " below, ", formulaNode(change.above), " above");
    lines.push(line);
  }
  const noise = noiseAt(metric, path);
  if (noise && noise.range !== null) {
    const text = `repetitions: range ${percent(noise.range)} of the mean, 90 % of the deviations from ${percent(noise.low)} to ${percent(noise.high)}`;
    lines.push(element("div", { class: "status" }, `${text}, worst ${percent(noise.worst)}${noise.place ? " at " + noise.place : ""}`));
  }
  if (noise && noise.warning) lines.push(element("div", { class: "status outside" }, noise.warning));
  return lines;
}

// Draws the two models of a change of behaviour, each over its range, and the gap between the ranges.
function drawChange(svg, x, y, axis, fixed, height) {
  const leaf = state.scope === "exclusive" || !childrenOf[state.path].length;
  const change = leaf ? changeAt(state.metric, state.path) : null;
  if (!change || change.parameter !== axis) return;
  const [a, b] = [x.place(change.last), x.place(change.first)];
  const gap = shape("rect", { class: "gap", x: a, width: Math.max(1, b - a), y: FRAME.top, height: height - FRAME.bottom - FRAME.top });
  gap.append(shape("title", {}, `behaviour changes ${betweenText(change)}`));
  svg.append(gap);
  for (const [model, low, high] of [[change.below, x.low, change.last], [change.above, change.first, x.high]]) {
    const steps = [];
    for (let k = 0; k <= 60; k++) {
      const at = x.log ? low * (high / low) ** (k / 60) : low + ((high - low) * k) / 60;
      const point = fixed.slice();
      point[axis] = at;
      const value = evaluate(model, point);
      if (Number.isFinite(value) && value <= y.high && value >= y.low) steps.push(`${x.place(at).toFixed(1)} ${y.place(value).toFixed(1)}`);
    }
    if (steps.length > 1) svg.append(shape("path", { class: "part", d: "M" + steps.join("L") }));
  }
}

// Draws the noise levels of one metric: minimum, 5 % to 95 %, quartiles, median and mean. most: end of the common scale.
function noiseBox(levels, average, most) {
  const width = 260;
  const x = (value) => (6 + (width - 12) * Math.min(1, value / most)).toFixed(1);
  const [least, low, first, middle, third, high, largest] = levels;
  const svg = shape("svg", { viewBox: `0 0 ${width} 22`, class: "box", role: "img", "aria-label": `median ${percent(middle)}, largest ${percent(largest)}` });
  svg.append(shape("line", { x1: x(least), x2: x(largest), y1: 11, y2: 11 }));
  svg.append(shape("rect", { class: "most", x: x(low), width: Math.max(1, x(high) - x(low)), y: 7, height: 8 }));
  svg.append(shape("rect", { class: "half", x: x(first), width: Math.max(1, x(third) - x(first)), y: 4, height: 14 }));
  svg.append(shape("line", { class: "median", x1: x(middle), x2: x(middle), y1: 2, y2: 20 }));
  svg.append(shape("circle", { class: "mean", cx: x(average), cy: 11, r: 3 }));
  return svg;
}

function pathCell(path, metric) {
  const button = nameButton(path);
  button.addEventListener("click", () => {
    byId("metric").value = metric;
    byId("scope").value = "exclusive";
    choose({ metric, scope: "exclusive" });
    openPath(path);
    byId("detail").scrollIntoView({ block: "nearest" });
  });
  return element("td", { class: "path" }, button, ...callersOf(path));
}

function drawNoise() {
  const rows = [];
  const known = Object.entries(DATA.noise).filter(([, entry]) => entry.levels.length);
  const most = Math.max(1e-9, ...known.map(([, entry]) => entry.levels[5] * 1.3));
  for (const [metric, entry] of known) {
    const row = element("tr", {}, element("td", {}, metric));
    const [least, , , middle, , , largest] = entry.levels;
    for (const value of [least, middle, entry.mean, largest]) row.append(element("td", { class: "number" }, percent(value)));
    row.append(element("td", {}, noiseBox(entry.levels, entry.mean, most)));
    rows.push(row);
  }
  byId("levels").hidden = !rows.length;
  byId("levels").tBodies[0].replaceChildren(...rows);
  const size = (one) => {
    const values = DATA.values[one.metric][one.path];
    const last = Array.isArray(values) ? values[values.length - 1] : values;
    return mean(Array.isArray(last) ? last.filter((value) => value !== null) : [last || 0]) || 0;
  };
  const changes = [...changesOf.values()].sort((a, b) => a.metric.localeCompare(b.metric) || size(b) - size(a));
  byId("changes").hidden = !changes.length;
  byId("changes").tBodies[0].replaceChildren(...changes.slice(0, 25).map((one) => {
    const row = element("tr", { "data-path": one.path }, pathCell(one.path, one.metric), element("td", {}, one.metric));
    row.append(element("td", {}, betweenText(one)), element("td", {}, formulaNode(one.below)), element("td", {}, formulaNode(one.above)));
    return row;
  }));
  const doubtful = [...noiseOf.entries()].filter(([, one]) => one.warning).map(([key, one]) => [...key.split("\n"), one]);
  const single = doubtful.filter(([, , one]) => one.range === null).length;
  const loud = doubtful.filter(([, , one]) => one.range !== null).sort((a, b) => b[2].range - a[2].range);
  byId("doubtful").hidden = !loud.length;
  byId("doubtful").tBodies[0].replaceChildren(...loud.slice(0, 25).map(([metric, path, one]) => {
    const row = element("tr", { "data-path": path }, pathCell(Number(path), metric), element("td", {}, metric));
    row.append(element("td", { class: "number" }, percent(one.range)), element("td", {}, one.warning));
    return row;
  }));
  const parts = [];
  if (changes.length > 25) parts.push(`${changes.length - 25} further changes of behaviour are not listed`);
  if (loud.length > 25) parts.push(`${loud.length - 25} further call paths with too much noise are not listed`);
  if (!rows.length) parts.push(single ? "no repetitions: the noise is unknown" : "no metric with noise was measured");
  if (!changes.length) parts.push("no change of behaviour was found (six values of a parameter are needed to look for one)");
  byId("noise-status").textContent = parts.join("; ");
}
