// SPDX-License-Identifier: Apache-2.0
// Draws the measured points and the model of the chosen call path over one parameter. The other parameters are fixed.

const FRAME = { left: 66, right: 14, top: 30, bottom: 40 };
const WIDEST = 1800; // largest width of a chart in pixels; on a wider page the chart and its text are enlarged

function niceTicks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((candidate) => candidate >= raw * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9) + step * 1e-9; k++) ticks.push(k * step);
  return ticks;
}

function logTicks(low, high) {
  const decades = Math.log10(high / low);
  const within = decades < 1.5 ? [1, 2, 5] : decades < 3 ? [1, 3] : [1];
  const every = Math.max(1, Math.ceil(decades / 8));
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
    if (e % every === 0) for (const m of within) ticks.push(m * 10 ** e);
  return ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
}

function axisOf(low, high, log, from, to) {
  const map = log ? Math.log : (x) => x;
  const span = map(high) - map(low) || 1;
  const place = (x) => from + ((map(x) - map(low)) / span) * (to - from);
  return { low, high, log, place, ticks: log ? logTicks(low, high) : niceTicks(low, high, Math.abs(to - from) / (from < to ? 70 : 42)) };
}

function measuredPoints(axis, fixed) {
  const list = [];
  DATA.points.forEach((point, configuration) => {
    if (!point.every((value, at) => at === axis || value === fixed[at])) return;
    const values = repetitionsOf(state.metric, state.scope, state.path, configuration);
    const known = values.filter((value) => value !== null && value !== undefined);
    if (known.length) list.push({ x: point[axis], values: known, oversubscribed: DATA.oversubscribed[configuration] });
  });
  return list.sort((a, b) => a.x - b.x);
}

// The largest number of predictions for a curve. If there are many call paths below the chosen one, fewer points of the
// curve get an interval. These points are among the points for its callers, so that their cached predictions are used.
const MOST_PREDICTIONS = 8000;
const placesWithInterval = (parts, count) => (parts < KEPT_FROM ? Math.min(count, Math.floor(MOST_PREDICTIONS / parts)) : parts * 16 <= MOST_PREDICTIONS ? 16 : parts * 8 <= MOST_PREDICTIONS ? 8 : 4);

// The computation of an interval that is not complete. Predictions of large subtrees are computed in slices, and the curve
// gets its interval after the last slice.
let awaited = null;
function makeIntervals(set, path, points) {
  function* all() {
    for (const point of points) yield* set.predicting(path, point);
  }
  const work = all();
  const slice = () => {
    if (work !== awaited) return; // the user has chosen another curve
    if (work.next().done) drawPlot();
    else setTimeout(slice);
  };
  setTimeout(slice);
  return work;
}

function finishIntervals() {
  if (awaited === null) return;
  while (!awaited.next().done);
  drawPlot();
}

function curveOf(axis, fixed, low, high, log, count) {
  const set = modelsOf(state.metric);
  const formula = set.formula(state.path, state.scope);
  const parts = state.scope === "exclusive" ? 1 : subtreeSize(state.path);
  const steps = placesWithInterval(parts, count);
  const pointAt = (part) => {
    const point = fixed.slice();
    point[axis] = log ? low * (high / low) ** part : low + (high - low) * part;
    return point;
  };
  const places = Array.from({ length: steps + 1 }, (_, k) => pointAt(k / steps));
  const known = set.isKnown(state.path, state.scope, places);
  awaited = known ? null : makeIntervals(set, state.path, places);
  byId("plot").setAttribute("aria-busy", !known);
  const alone = (value) => (Number.isNaN(value) ? null : { middle: value, low: value, high: value });
  const bands = [];
  for (const point of places) {
    const one = known ? set.predict(state.path, state.scope, point) : alone(set.middleOf(state.path, state.scope, point));
    if (!one) return [];
    const value = formula ? evaluate(formula, point) : one.middle;
    bands.push({ value, below: one.low / value, above: one.high / value, one });
  }
  const list = [];
  for (let k = 0; k <= count; k++) {
    const point = pointAt(k / count);
    const at = Math.min(steps - 1, Math.floor((k / count) * steps));
    const between = (k / count) * steps - at;
    const [a, b] = [bands[at], bands[at + 1]];
    const entry = { x: point[axis], value: formula ? evaluate(formula, point) : a.value * (1 - between) + b.value * between };
    for (const key of ["below", "above"]) {
      // The interval is exact at predicted points. Between them, its distance from the curve is interpolated.
      const ratio = a[key] * (1 - between) + b[key] * between;
      entry[key] = between === 0 ? a.one[key === "below" ? "low" : "high"] : Number.isFinite(ratio) ? ratio * entry.value : entry.value;
    }
    if ([entry.value, entry.below, entry.above].every(Number.isFinite)) list.push(entry);
  }
  return list;
}

function drawPlot() {
  const svg = document.querySelector("#plot svg");
  const width = Math.max(300, Math.min(WIDEST, byId("plot").clientWidth || 600));
  const height = width < 460 ? 250 : 310;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  const say = (text) => svg.append(shape("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, text));
  if (state.path < 0 || !DATA.metrics.length) return say("nothing was measured");
  if (!DATA.parameters.length) return say("no parameters: there is nothing to plot over");
  const axis = state.axis;
  const column = DATA.points.map((point) => point[axis]);
  const measuredLow = Math.min(...column);
  const measuredHigh = Math.max(...column);
  const points = measuredPoints(axis, state.fixed);
  const reach = byId("extend").checked && state.target[axis] > 0 ? state.target[axis] : measuredHigh;
  let low = Math.min(measuredLow, reach);
  let high = Math.max(measuredHigh, reach);
  const logX = byId("logx").checked && low > 0;
  if (low === high) [low, high] = low > 0 ? [low / 2, high * 2] : [low - 1, high + 1];
  const curve = curveOf(axis, state.fixed, low, high, logX, 160);
  const logWanted = byId("logy").checked;
  const ys = [...points.flatMap((point) => point.values), ...curve.flatMap((c) => [c.value, c.above])];
  const usable = logWanted ? ys.filter((y) => y > 0) : ys;
  if (!usable.length) return say(logWanted && ys.length ? "only zeros: switch log y off" : "not measured here");
  const logY = logWanted;
  let bottom = Math.min(...usable);
  let top = Math.max(...usable);
  if (!logY) bottom = Math.min(0, bottom);
  if (top === bottom) top = bottom === 0 ? 1 : logY ? bottom * 2 : bottom + Math.abs(bottom);
  if (logY) [bottom, top] = [bottom / 1.3, top * 1.3];
  else top += (top - bottom) * 0.06;
  const pad = logX ? (high / low) ** 0.03 : (high - low) * 0.03;
  const x = axisOf(logX ? low / pad : low - pad, logX ? high * pad : high + pad, logX, FRAME.left, width - FRAME.right);
  const y = axisOf(bottom, top, logY, height - FRAME.bottom, FRAME.top);
  if (new Set(column).size <= 12) x.ticks = [...new Set(column)].sort((a, b) => a - b).concat(reach > measuredHigh ? [reach] : []);
  drawAxes(svg, x, y, width, height, DATA.parameters[axis], (value) => quantity(value, metricByName.get(state.metric).unit));
  drawCurve(svg, curve, x, y, measuredLow, measuredHigh, height);
  drawBeyond(svg, x, axis, reach, width, measuredHigh);
  drawChange(svg, x, y, axis, state.fixed, height);
  for (const point of points) {
    for (const value of point.values)
      if (!logY || value > 0) svg.append(shape("circle", { class: point.oversubscribed ? "point oversubscribed" : "point", cx: x.place(point.x), cy: y.place(value), r: 3.5 }, shape("title", {}, tip(axis, point.x, value) + (point.oversubscribed ? ", more ranks than processors" : ""))));
    const middle = median(point.values);
    if (point.values.length > 1 && (!logY || middle > 0)) svg.append(shape("circle", { class: "mean", cx: x.place(point.x), cy: y.place(middle), r: 5.5 }));
  }
  drawLegend(svg, width, {
    dedicated: points.some((point) => !point.oversubscribed),
    oversubscribed: points.some((point) => point.oversubscribed),
    several: points.some((point) => point.values.length > 1),
    model: curve.length > 0,
    band: curve.some((c) => c.above > c.below * 1.0001),
  });
  svg.setAttribute("aria-label", `${state.metric} of ${regionOf(state.path).short} over ${DATA.parameters[axis]}: ${points.length} measured configurations`);
}

function tip(axis, at, value) {
  return `${DATA.parameters[axis]} = ${numberText(at)}: ${quantity(value, metricByName.get(state.metric).unit)}`;
}

function drawAxes(svg, x, y, width, height, label, yText, xText = numberText) {
  let last = -Infinity;
  for (const tick of x.ticks) {
    const at = x.place(tick);
    svg.append(shape("line", { class: "grid", x1: at, x2: at, y1: FRAME.top, y2: height - FRAME.bottom }));
    const text = xText(Number(tick.toPrecision(10)));
    const half = text.length * 3.6;
    const middle = Math.min(at, width - half); // keeps the last label inside of the chart
    if (middle - half < last + 6) continue;
    last = middle + half;
    svg.append(shape("text", { x: middle, y: height - FRAME.bottom + 16, "text-anchor": "middle" }, text));
  }
  for (const tick of y.ticks) {
    const at = y.place(tick);
    svg.append(shape("line", { class: "grid", x1: FRAME.left, x2: width - FRAME.right, y1: at, y2: at }));
    svg.append(shape("text", { x: FRAME.left - 7, y: at + 4, "text-anchor": "end" }, yText(Number(tick.toPrecision(10)))));
  }
  svg.append(shape("line", { class: "axis", x1: FRAME.left, x2: width - FRAME.right, y1: height - FRAME.bottom, y2: height - FRAME.bottom }));
  svg.append(shape("line", { class: "axis", x1: FRAME.left, x2: FRAME.left, y1: FRAME.top, y2: height - FRAME.bottom }));
  svg.append(shape("text", { x: (FRAME.left + width - FRAME.right) / 2, y: height - 6, "text-anchor": "middle" }, label));
}

function drawCurve(svg, curve, x, y, measuredLow, measuredHigh, height) {
  if (!curve.length) return;
  const shown = y.log ? curve.filter((c) => c.value > 0) : curve;
  for (const [from, to] of [[x.low, measuredLow], [measuredHigh, x.high]]) {
    const [a, b] = [x.place(from), x.place(to)];
    if (curve.some((c) => c.x > from && c.x < to) && b > a + 3) svg.append(shape("rect", { class: "outside", x: a, width: b - a, y: FRAME.top, height: height - FRAME.bottom - FRAME.top }));
  }
  if (shown.some((c) => c.above > c.below)) {
    const bottom = y.log ? y.low : -Infinity;
    const edge = (list, key) => list.map((c) => `${x.place(c.x).toFixed(1)},${y.place(Math.max(bottom, c[key])).toFixed(1)}`);
    svg.append(shape("polygon", { class: "band", points: [...edge(shown, "above"), ...edge([...shown].reverse(), "below")].join(" ") }));
  }
  const inside = shown.filter((c) => c.x >= measuredLow * 0.9999 && c.x <= measuredHigh * 1.0001);
  const path = (list) => list.map((c, at) => (at ? "L" : "M") + x.place(c.x).toFixed(1) + " " + y.place(c.value).toFixed(1)).join("");
  if (inside.length) svg.append(shape("path", { class: "curve", d: path(inside) }));
  for (const part of [shown.filter((c) => c.x <= measuredLow * 1.0001), shown.filter((c) => c.x >= measuredHigh * 0.9999)])
    if (part.length > 1) svg.append(shape("path", { class: "curve beyond", d: path(part) }));
}

// Writes into the plot by which factor the end of the axis is beyond the measurements.
function drawBeyond(svg, x, axis, reach, width, measuredHigh) {
  const [from, to] = [x.place(measuredHigh), width - FRAME.right];
  if (!(reach > measuredHigh) || !(measuredHigh > 0)) return;
  const text = `${factorText(reach / measuredHigh)} beyond`;
  if (to - from > text.length * 6.5) svg.append(shape("text", { x: (from + to) / 2, y: FRAME.top + 14, "text-anchor": "middle" }, text));
}

function drawLegend(svg, width, { dedicated, oversubscribed, several, model, band }) {
  const entries = dedicated || !oversubscribed ? [[shape("circle", { class: "point", cx: 8, cy: 0, r: 3.5 }), "measured"]] : [];
  if (oversubscribed) entries.push([shape("circle", { class: "point oversubscribed", cx: 8, cy: 0, r: 3.5 }), "oversubscribed"]);
  if (several) entries.push([shape("circle", { class: "mean", cx: 8, cy: 0, r: 5 }), "median"]);
  if (model) entries.push([shape("line", { class: "curve", x1: 0, x2: 17, y1: 0, y2: 0 }), "model"]);
  if (model && band) entries.push([shape("rect", { class: "band", x: 0, width: 17, y: -5, height: 10 }), "90 % interval"]);
  placeLegend(svg, width, entries);
}

// Draws a legend in a line above a plot: samples and texts.
function placeLegend(svg, width, entries) {
  let [left, line] = [FRAME.left, 10];
  for (const [sample, text] of entries) {
    const room = 34 + text.length * 6.2;
    if (left + room > width + 10) [left, line] = [FRAME.left, line + 14];
    svg.append(shape("g", { transform: `translate(${left},${line})` }, sample, shape("text", { x: 22, y: 4 }, text)));
    left += room;
  }
}
