// SPDX-License-Identifier: Apache-2.0
// Speed-up and efficiency over the ranks, measured and modeled, with the ideal.

const RANKS = DATA.parameters.indexOf("p");

// Whether the work of a rank stays as ranks are added: blocks of a rank do not shrink with the ranks.
function isWeak() {
  const metric = metricByName.has("blocks") ? "blocks" : "instructions";
  if (!metricByName.has(metric)) return false;
  const line = measuredLine(metric);
  if (line.length < 2 || !(line[0][1] > 0)) return false;
  const [[low, first], [high, last]] = [line[0], line[line.length - 1]];
  return last / first > Math.sqrt(low / high);
}

// [ranks, program] along the configurations whose other parameters are as chosen.
function measuredLine(metric) {
  const line = [];
  measuredTotals(metric).forEach((value, at) => {
    const point = DATA.points[at];
    if (point.every((one, column) => column === RANKS || one === state.fixed[column]) && Number.isFinite(value)) line.push([point[RANKS], value, DATA.oversubscribed[at]]);
  });
  return line.sort((a, b) => a[0] - b[0]);
}

// What is not said by an efficiency of means (or sums) where one rank takes much longer than the others.
const notOfSlowest = () => (DATA.slowest && DATA.slowest.over !== "max" ? `, by the ${DATA.slowest.over} over ranks, not by the slowest rank` : "");

function drawScaling() {
  const line = measuredLine("time");
  const weak = byId("scaling-kind").value === "weak";
  const place = DATA.parameters.filter((_, at) => at !== RANKS).map((name) => `${name}=${numberText(state.fixed[DATA.parameters.indexOf(name)])}`).join(", ");
  const frames = { speedup: chartFrame("speedup"), efficiency: chartFrame("efficiency") };
  byId("scaling-status").textContent = "";
  if (line.length < 2 || !(line[0][1] > 0)) return Object.values(frames).forEach((frame) => emptyChart(frame, `fewer than two values of p were measured${place ? ` at ${place}` : ""}`));
  const [base, first] = line[0];
  const efficiency = (p, time, one) => (time > 0 ? (weak ? one / time : (one * base) / (time * p)) : NaN);
  const models = programModels("time");
  const places = models.length ? placesOver(RANKS, state.fixed, state.target[RANKS], models.length) : [];
  const least = programAt("time", DATA.parameters.map((name, at) => (at === RANKS ? base : state.fixed[at]))); // each relative to itself: the noise of one run is no efficiency
  const model = places.map((point) => [point[RANKS], efficiency(point[RANKS], programAt("time", point), least)]).filter(([, value]) => Number.isFinite(value) && value > 0);
  const points = line.map(([p, time, shared]) => [p, efficiency(p, time, first), shared]);
  const end = Math.max(...points.map(([p]) => p), ...model.map(([p]) => p));
  const logX = isSpread(base, end);
  const most = Math.max(1, ...points.map((one) => one[1]), ...model.map((one) => one[1]));
  const range = [base, end > base ? end : base + 1];
  drawScale(frames.efficiency, range, [0, most * 1.08], { logX, percentages: true }, points, model, [[base, 1], [end, 1]]);
  const scaled = (list) => list.map(([p, value, shared]) => [p, p * value, shared]);
  const speeds = [...scaled(points), ...scaled(model)].map((one) => one[1]).filter((value) => value > 0);
  const logRange = [Math.min(base, ...speeds) / 1.2, Math.max(end, ...speeds) * 1.2];
  const linear = [0, Math.max(end, ...speeds) * 1.08];
  const ideal = Array.from({ length: 33 }, (_, k) => base + ((end - base) * k) / 32).map((p) => [p, p]);
  drawScale(frames.speedup, range, logX ? logRange : linear, { logX, logY: logX }, scaled(points), scaled(model), ideal);
  const last = model.length ? model[model.length - 1] : points[points.length - 1];
  byId("scaling-status").textContent = `${weak ? "weak" : "strong"} scaling${place ? ` at ${place}` : ""}, relative to p=${numberText(base)}: efficiency ${percent(last[1], 0)} at p=${numberText(last[0])}${model.length ? " (modeled)" : ""}${notOfSlowest()}`;
  for (const [name, frame] of Object.entries(frames)) frame.svg.setAttribute("aria-label", `${name === "speedup" ? "Speed-up" : "Efficiency"} over p: ${byId("scaling-status").textContent}`);
}

function drawScale(frame, range, span, how, points, model, ideal) {
  const { x, y } = axesFor(frame, range, span, { ...how, label: "p", unit: "1" });
  const highest = Math.max(...DATA.points.map((point) => point[RANKS]));
  frame.svg.append(shape("path", { class: "ideal", d: pathOf(x, y, ideal) }));
  const inside = model.filter(([p]) => p <= highest * 1.0001);
  if (inside.length > 1) frame.svg.append(shape("path", { class: "curve", d: pathOf(x, y, inside) }));
  const beyond = model.filter(([p]) => p >= highest * 0.9999);
  if (beyond.length > 1) frame.svg.append(shape("path", { class: "curve beyond", d: pathOf(x, y, beyond) }));
  for (const [p, value, shared] of points)
    if (value > 0) frame.svg.append(shape("circle", { class: shared ? "point oversubscribed" : "mean", cx: x.place(p), cy: y.place(value), r: 4 }, shape("title", {}, `p=${numberText(p)}: ${how.percentages ? percent(value, 1) : three(value)}`)));
  const keys = [[shape("path", { class: "ideal", d: "M0 0L17 0" }), "ideal"], [shape("circle", { class: "mean", cx: 8, cy: 0, r: 4 }), "measured"]];
  if (model.length) keys.push([shape("line", { class: "curve", x1: 0, x2: 17, y1: 0, y2: 0 }), "model"]);
  if (beyond.length > 1) keys.push([shape("line", { class: "curve beyond", x1: 0, x2: 17, y1: 0, y2: 0 }), "predicted"]);
  placeLegend(frame.svg, frame.width, keys);
}

// Whether two configurations differ in the ranks alone: there is no other line of p.
const hasLineOfRanks = () => new Set(DATA.points.map((point) => point.filter((_, at) => at !== RANKS).join())).size < DATA.points.length;

function startScaling() {
  const usable = !isSingle && RANKS >= 0 && metricByName.has("time") && hasLineOfRanks();
  byId("scaling").hidden = !usable;
  if (!usable) return;
  byId("scaling-kind").value = isWeak() ? "weak" : "strong";
  byId("scaling-kind").addEventListener("change", drawScaling);
}
