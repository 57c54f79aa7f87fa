// SPDX-License-Identifier: Apache-2.0
// Draws speed-up and efficiency over the number of ranks: measured, modeled and ideal.

const RANKS = DATA.parameters.indexOf("p");

// Returns whether the runs are weak scaling. The basic blocks of a rank are constant in weak scaling, and decrease like 1/p
// in strong scaling. The limit is 1/√p.
function isWeak() {
  const metric = metricByName.has("blocks") ? "blocks" : "instructions";
  if (!metricByName.has(metric)) return false;
  const line = measuredLine(metric);
  if (line.length < 2 || !(line[0][1] > 0)) return false;
  const [[low, first], [high, last]] = [line[0], line[line.length - 1]];
  return last / first > Math.sqrt(low / high);
}

// Returns [ranks, measured total] of the configurations that have the chosen values of the other parameters.
function measuredLine(metric) {
  const line = [];
  measuredTotals(metric).forEach((value, at) => {
    const point = DATA.points[at];
    if (point.every((one, column) => column === RANKS || one === state.fixed[column]) && Number.isFinite(value)) line.push([point[RANKS], value, DATA.oversubscribed[at]]);
  });
  return line.sort((a, b) => a[0] - b[0]);
}

// Returns a note if one rank takes much longer than the others, because efficiencies of means or sums do not show this.
const notOfSlowest = () => (DATA.slowest && DATA.slowest.over !== "max" ? `, by the ${DATA.slowest.over} over ranks, not by the slowest rank` : "");

const scalingKind = () => byId("scaling-kind").value;

// Returns the base of the efficiencies: the smallest measured number of ranks with the chosen values of other parameters.
function baseOfScaling() {
  const line = byId("scaling").hidden ? [] : measuredLine("time");
  return line.length > 1 && line[0][1] > 0 ? line[0][0] : NaN;
}

// Returns the efficiency of p ranks that take `time`, relative to `base` ranks that take `first`.
function efficiencyOf(p, time, base, first) {
  if (!(time > 0)) return NaN;
  return scalingKind() === "weak" ? first / time : (first * base) / (time * p);
}

// Returns the modeled efficiency at a point, relative to the modeled time of `base` ranks. The base is not the measured
// time, which would add the noise of one run. All parts of the page use this function.
const efficiencyAt = (point, base) => efficiencyOf(point[RANKS], programAt("time", point), base, programAt("time", point.map((value, at) => (at === RANKS ? base : value))));

function drawScaling() {
  const line = measuredLine("time");
  const base = baseOfScaling();
  const [place, target] = [othersText(state.fixed, RANKS), targetPoint()];
  const frames = { speedup: chartFrame("speedup"), efficiency: chartFrame("efficiency") };
  byId("scaling-status").textContent = "";
  if (!(base > 0)) return Object.values(frames).forEach((frame) => emptyChart(frame, `fewer than two values of p were measured${place ? ` at ${place}` : ""}`));
  const points = line.map(([p, time, shared]) => [p, efficiencyOf(p, time, base, line[0][1]), shared]);
  const highest = Math.max(...DATA.points.map((point) => point[RANKS]));
  const models = programModels("time").length;
  const along = (others, reach) => (models ? placesOver(RANKS, others, reach, models) : []).map((point) => [point[RANKS], efficiencyAt(point, base)]).filter(([p, value]) => p >= base && Number.isFinite(value) && value > 0);
  const same = othersText(target, RANKS) === place;
  const model = along(state.fixed, highest);
  const predicted = along(target, target[RANKS]).filter(([p]) => !same || p >= highest * 0.9999);
  const curves = [...model, ...predicted];
  const end = Math.max(...[...points, ...curves].map(([p]) => p));
  const logX = isSpread(base, end);
  const most = Math.max(1, ...points.map((one) => one[1]), ...curves.map((one) => one[1]));
  const range = [base, end > base ? end : base + 1];
  const others = same ? "" : ` at ${othersText(target, RANKS)}`;
  drawScale(frames.efficiency, range, [0, most * 1.08], { logX, percentages: true, others }, points, model, predicted, [[base, 1], [end, 1]]);
  const scaled = (list) => list.map(([p, value, shared]) => [p, p * value, shared]);
  const speeds = scaled([...points, ...curves]).map((one) => one[1]).filter((value) => value > 0);
  const logRange = [Math.min(base, ...speeds) / 1.2, Math.max(end, ...speeds) * 1.2];
  const linear = [0, Math.max(end, ...speeds) * 1.08];
  const ideal = Array.from({ length: 33 }, (_, k) => base + ((end - base) * k) / 32).map((p) => [p, p]);
  drawScale(frames.speedup, range, logX ? logRange : linear, { logX, logY: logX, others }, scaled(points), scaled(model), scaled(predicted), ideal);
  const last = points[points.length - 1];
  const [at, value, how] = models ? [target, efficiencyAt(target, base), "modeled"] : [state.fixed.map((own, column) => (column === RANKS ? last[0] : own)), last[1], "measured"];
  byId("scaling-status").textContent = `${scalingKind()} scaling, relative to p=${numberText(base)}: efficiency ${percent(value, 0)} at ${pointText(DATA.parameters, at)} (${how})${place ? `; measured at ${place}` : ""}${notOfSlowest()}`;
  for (const [name, frame] of Object.entries(frames)) frame.svg.setAttribute("aria-label", `${name === "speedup" ? "Speed-up" : "Efficiency"} over p: ${byId("scaling-status").textContent}`);
}

// Draws one scale. how.others: the point of the prediction, if its other parameters differ from the measurements.
function drawScale(frame, range, span, how, points, model, predicted, ideal) {
  const { x, y } = axesFor(frame, range, span, { ...how, label: "p", unit: "1" });
  frame.svg.append(shape("path", { class: "ideal", d: pathOf(x, y, ideal) }));
  if (model.length > 1) frame.svg.append(shape("path", { class: "curve", d: pathOf(x, y, model) }));
  if (predicted.length > 1) frame.svg.append(shape("path", { class: "curve beyond", d: pathOf(x, y, predicted) }));
  for (const [p, value, shared] of points)
    if (value > 0) frame.svg.append(shape("circle", { class: shared ? "point oversubscribed" : "mean", cx: x.place(p), cy: y.place(value), r: 4 }, shape("title", {}, `p=${numberText(p)}: ${how.percentages ? percent(value, 1) : three(value)}`)));
  const keys = [[shape("path", { class: "ideal", d: "M0 0L17 0" }), "ideal"], [shape("circle", { class: "mean", cx: 8, cy: 0, r: 4 }), "measured"]];
  if (model.length) keys.push([shape("line", { class: "curve", x1: 0, x2: 17, y1: 0, y2: 0 }), "model"]);
  if (predicted.length > 1) keys.push([shape("line", { class: "curve beyond", x1: 0, x2: 17, y1: 0, y2: 0 }), `predicted${how.others}`]);
  placeLegend(frame.svg, frame.width, keys);
}

// Returns whether at least two configurations differ only in the number of ranks.
const hasLineOfRanks = () => new Set(DATA.points.map((point) => point.filter((_, at) => at !== RANKS).join())).size < DATA.points.length;

function startScaling() {
  const usable = !isSingle && RANKS >= 0 && metricByName.has("time") && hasLineOfRanks();
  byId("scaling").hidden = !usable;
  if (!usable) return;
  byId("scaling-kind").value = isWeak() ? "weak" : "strong";
  byId("scaling-kind").addEventListener("change", () => {
    drawScaling();
    drawOverview();
  });
}
