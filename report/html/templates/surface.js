// SPDX-License-Identifier: Apache-2.0
// Draws the model of the chosen call path over two parameters as a heat map, with measured points in the same colours.

const STEPS = 9; // number of colours
const CELLS = [28, 18];
const COLOUR_BAR = 104; // pixels to the right of the map
let surface = null; // the drawn map: axes, values of the cells, measured points
let cursor = [0, 0];

const between = ([low, high, log], part) => (log ? low * (high / low) ** part : low + (high - low) * part);
const otherAxis = () => Number(byId("surface-other").value);

// Returns the range of an axis. It extends half a cell beyond the lowest and the highest value, so that the outer cells
// are centred on these values.
function surfaceRange(axis, at) {
  const column = DATA.points.map((point) => point[axis]);
  const reach = byId("surface-extend").checked && state.target[axis] > 0 ? state.target[axis] : column[0];
  let [low, high] = [Math.min(...column, reach), Math.max(...column, reach)];
  const log = isSpread(low, high);
  if (low === high) [low, high] = low > 0 ? [low / 2, high * 2] : [low - 1, high + 1];
  const half = 0.5 / (CELLS[at] - 1);
  return [between([low, high, log], -half), between([low, high, log], 1 + half), log];
}

// Returns the means over repetitions of the configurations that have the chosen values of the other parameters.
function measuredOn(axes) {
  return DATA.points.flatMap((point, configuration) => {
    if (!point.every((value, at) => axes.includes(at) || value === state.fixed[at])) return [];
    const value = median(repetitionsOf(state.metric, state.scope, state.path, configuration));
    return Number.isFinite(value) ? [{ point, value, shared: DATA.oversubscribed[configuration] }] : [];
  });
}

// Returns the limits of the colours: equal steps, or equal ratios if the values differ much. With equal ratios, zeros have
// the first colour.
function colourLimits(values) {
  const usable = values.filter((value) => Number.isFinite(value) && value >= 0);
  const positive = usable.filter((value) => value > 0);
  const [least, most] = [positive, usable].map((list, at) => list.reduce((a, b) => (at ? Math.max(a, b) : Math.min(a, b)), at ? 0 : Infinity));
  const log = isSpread(least, most);
  const low = log ? least : usable.reduce((a, b) => Math.min(a, b), most);
  const high = most > low ? most : low + (low || 1);
  return Array.from({ length: STEPS + 1 }, (_, at) => between([low, high, log], at / STEPS));
}

const colourOf = (limits, value) => `s${Math.max(0, Math.min(STEPS - 1, limits.filter((limit) => limit <= value).length - 1))}`;

function drawSurface() {
  if (byId("surface-card").hidden) return;
  surfaceAxes();
  const frame = chartFrame("surface");
  byId("surface-status").textContent = "";
  surface = null;
  const axes = [state.axis, otherAxis()];
  const metric = metricByName.get(state.metric);
  const [xName, yName] = axes.map((axis) => DATA.parameters[axis]);
  byId("surface-title").textContent = `${state.metric} over ${xName} and ${yName}`;
  if (state.path < 0) return emptyChart(frame, "nothing was measured");
  const set = modelsOf(state.metric);
  const formula = set.formula(state.path, state.scope);
  const ranges = axes.map(surfaceRange);
  const pointAt = (parts) => {
    const point = state.fixed.slice();
    axes.forEach((axis, at) => (point[axis] = Number(between(ranges[at], parts[at]).toPrecision(12))));
    return point;
  };
  const cells = Array.from({ length: CELLS[1] }, (_y, row) => Array.from({ length: CELLS[0] }, (_x, column) => {
    const point = pointAt([(column + 0.5) / CELLS[0], (row + 0.5) / CELLS[1]]);
    return { point, value: formula ? Math.max(0, evaluate(formula, point)) : set.middleOf(state.path, state.scope, point) };
  }));
  const measured = measuredOn(axes);
  const values = [...cells.flat(), ...measured].map((one) => one.value).filter(Number.isFinite);
  if (!values.length) return emptyChart(frame, `no model and no measured values of ${state.metric} here`);
  const limits = colourLimits(values);
  const [width, height] = [frame.width - COLOUR_BAR, frame.height];
  const x = axisOf(ranges[0][0], ranges[0][1], ranges[0][2], FRAME.left, width - FRAME.right);
  const y = axisOf(ranges[1][0], ranges[1][1], ranges[1][2], height - FRAME.bottom, FRAME.top);
  axes.forEach((axis, at) => {
    const distinct = [...new Set(measured.map((one) => one.point[axis]))].sort((a, b) => a - b);
    if (distinct.length > 1 && distinct.length <= 8 && !byId("surface-extend").checked) [x, y][at].ticks = distinct;
  });
  const [wide, tall] = [(width - FRAME.right - FRAME.left) / CELLS[0], (height - FRAME.bottom - FRAME.top) / CELLS[1]];
  drawAxes(frame.svg, x, y, width, height, xName, numberText);
  frame.svg.append(shape("text", { x: FRAME.left - 7, y: FRAME.top - 8, "text-anchor": "end" }, yName));
  cells.forEach((list, row) => list.forEach(({ value }, column) => {
    const place = { x: (FRAME.left + column * wide).toFixed(2), y: (height - FRAME.bottom - (row + 1) * tall).toFixed(2), width: (wide + 0.4).toFixed(2), height: (tall + 0.4).toFixed(2) };
    if (Number.isFinite(value)) frame.svg.append(shape("rect", { class: colourOf(limits, value), ...place }));
  }));
  surface = { axes, measured, cells, frame, wide, tall, height, x, y };
  drawMeasuredRange();
  for (const { point, value, shared } of measured) {
    const [cx, cy] = [x.place(point[axes[0]]), y.place(point[axes[1]])];
    const text = `${pointText(DATA.parameters, point)}: measured ${quantity(value, metric.unit)}${shared ? ", more ranks than processors" : ""}`;
    frame.svg.append(shape("circle", { class: "halo", cx, cy, r: 6.5 }), shape("circle", { class: `spot ${colourOf(limits, value)}`, cx, cy, r: 5 }, shape("title", {}, text)));
  }
  drawColours(limits, metric, width);
  const spot = shape("g", {}, shape("circle", { class: "halo", cx: 8, cy: 0, r: 6.5 }), shape("circle", { class: `spot s${STEPS >> 1}`, cx: 8, cy: 0, r: 5 }));
  placeLegend(frame.svg, width, [[shape("rect", { class: `s${STEPS >> 1}`, x: 0, width: 17, y: -5, height: 10 }), "model"], [spot, width > 460 ? "measured: differs from the model where it is visible" : "measured"]]); // one line: below is the map
  frame.svg.append(shape("rect", { id: "surface-cursor", class: "cursor", width: wide, height: tall }));
  moveCursor(cursor);
  frame.svg.setAttribute("aria-label", `${state.metric} of ${regionOf(state.path).short} over ${xName} and ${yName}: from ${quantity(limits[0], metric.unit)} to ${quantity(limits[STEPS], metric.unit)}, ${measured.length} measured points`);
}

// Marks the measured range if the map is larger.
function drawMeasuredRange() {
  const { axes, frame, x, y } = surface;
  if (!byId("surface-extend").checked) return;
  const [[left, right], [low, high]] = axes.map((axis) => DATA.ranges[axis]);
  const corners = [[left, low], [right, low], [right, high], [left, high]];
  frame.svg.append(shape("path", { class: "within", d: pathOf(x, y, corners) + "Z" }, shape("title", {}, "measured range")));
}

function drawColours(limits, metric, left) {
  const { frame, height } = surface;
  const tall = (height - FRAME.bottom - FRAME.top) / STEPS;
  frame.svg.append(shape("text", { x: left, y: FRAME.top - 8 }, metric.name));
  limits.forEach((limit, at) => {
    const bottom = height - FRAME.bottom - at * tall;
    if (at < STEPS) frame.svg.append(shape("rect", { class: `s${at}`, x: left, y: bottom - tall, width: 16, height: tall }));
    frame.svg.append(shape("text", { x: left + 22, y: bottom + 4 }, quantity(limit, metric.unit)));
  });
}

function moveCursor([column, row]) {
  if (!surface) return;
  cursor = [Math.max(0, Math.min(CELLS[0] - 1, column)), Math.max(0, Math.min(CELLS[1] - 1, row))];
  const { axes, measured, cells, wide, tall, height, x, y } = surface;
  const node = byId("surface-cursor");
  node.setAttribute("x", FRAME.left + cursor[0] * wide);
  node.setAttribute("y", height - FRAME.bottom - (cursor[1] + 1) * tall);
  const { point, value } = cells[cursor[1]][cursor[0]];
  const unit = metricByName.get(state.metric).unit;
  const near = measured.filter((one) => cellOf(x, y, one.point, axes).every((place, at) => place === cursor[at]));
  const there = state.fixed.slice();
  axes.forEach((axis) => (there[axis] = Number(point[axis].toPrecision(3))));
  const parts = [Number.isFinite(value) ? `modeled ${quantity(value, unit)}` : "no model"];
  for (const one of near) parts.push(`measured ${quantity(one.value, unit)} at ${pointText(DATA.parameters, one.point)}`);
  const beyond = beyondText(timesBeyond(point, DATA.ranges));
  if (beyond) parts.push(`${beyond} beyond the measurements`);
  byId("surface-status").textContent = `${pointText(DATA.parameters, there)}: ${parts.join("; ")}`;
}

// Returns the cell of a point: [column, row].
function cellOf(x, y, point, axes) {
  const { wide, tall, height } = surface;
  const column = Math.floor((x.place(point[axes[0]]) - FRAME.left) / wide);
  const row = Math.floor((height - FRAME.bottom - y.place(point[axes[1]])) / tall);
  return [column, row];
}

// Handles keys: arrow keys move the cursor, Enter goes to the next measured point.
function surfaceKey(event) {
  if (!surface || event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  if (moves[event.key]) moveCursor(cursor.map((place, at) => place + moves[event.key][at]));
  else if (event.key === "Enter" && surface.measured.length) {
    const order = surface.measured.map((one) => cellOf(surface.x, surface.y, one.point, surface.axes));
    const here = order.findIndex((one) => one.every((place, at) => place === cursor[at]));
    moveCursor(order[(here + 1) % order.length]);
  } else return;
  event.preventDefault();
}

// Returns the parameters that the vertical axis can show: all except the parameter of the plot.
function surfaceAxes() {
  const chosen = otherAxis();
  const others = DATA.parameters.map((_, at) => at).filter((at) => at !== state.axis);
  const count = (at) => new Set(DATA.points.map((point) => point[at])).size;
  const best = others.includes(chosen) && byId("surface-other").options.length ? chosen : others.reduce((a, b) => (count(b) > count(a) ? b : a));
  byId("surface-other").replaceChildren(...others.map((at) => option(at, DATA.parameters[at], at === best)));
}

function startSurface() {
  byId("surface-card").hidden = isSingle || DATA.parameters.length < 2;
  if (byId("surface-card").hidden) return;
  for (const id of ["surface-other", "surface-extend"]) byId(id).addEventListener("change", drawSurface);
  byId("surface-frame").addEventListener("keydown", surfaceKey);
  byId("surface").addEventListener("click", (event) => {
    if (!surface) return;
    const box = byId("surface").getBoundingClientRect();
    const scale = surface.frame.width / box.width;
    const [left, up] = [(event.clientX - box.left) * scale - FRAME.left, surface.height - FRAME.bottom - (event.clientY - box.top) * scale];
    moveCursor([Math.floor(left / surface.wide), Math.floor(up / surface.tall)]);
  });
}
