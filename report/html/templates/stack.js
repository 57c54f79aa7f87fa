// SPDX-License-Identifier: Apache-2.0
// Section "Who takes over": the largest call paths, stacked over one parameter up to the target.

const MOST_LAYERS = 8;

// Returns the call paths with the largest share at any of the points, the largest first.
function layersAlong(models, places) {
  const best = new Map();
  for (const point of [places[0], places[places.length >> 1], places[places.length - 1]]) {
    const values = models.map(([path, model]) => [path, valueAt(model, point)]);
    const whole = values.reduce((sum, [, value]) => sum + value, 0);
    if (whole > 0) for (const [path, value] of values) best.set(path, Math.max(best.get(path) || 0, value / whole));
  }
  return [...best].filter(([, share]) => share > 0).sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, MOST_LAYERS).map(([path]) => path);
}

function drawStack() {
  const frame = chartFrame("stack");
  const metric = metricByName.get(state.metric);
  byId("stack-legend").replaceChildren();
  byId("stack-status").textContent = "";
  byId("stack-title").textContent = `Who takes over: ${state.metric} over ${DATA.parameters[state.axis] ?? "-"}`;
  if (!DATA.parameters.length) return emptyChart(frame, "no parameters: there is nothing to plot over");
  if (metric.over_locations === "max") return emptyChart(frame, `${state.metric} does not add up over call paths`);
  const models = programModels(state.metric);
  if (!models.length) return emptyChart(frame, `no models of ${state.metric}`);
  const target = targetPoint();
  const places = placesOver(state.axis, target, target[state.axis], models.length);
  const shown = layersAlong(models, places);
  const own = new Map(models);
  const sums = places.map((point) => programAt(state.metric, point));
  const shares = byId("stack-shares").checked;
  const xs = places.map((point) => point[state.axis]);
  const layers = shown.map((path) => places.map((point) => valueAt(own.get(path), point)));
  layers.push(sums.map((whole, at) => Math.max(0, whole - layers.reduce((sum, layer) => sum + layer[at], 0))));
  const top = shares ? 1 : Math.max(...sums) * 1.05 || 1;
  if (!Number.isFinite(top)) return emptyChart(frame, "no finite values up to the target");
  const { x, y } = axesFor(frame, [xs[0], xs[xs.length - 1]], [0, top], { logX: isSpread(xs[0], xs[xs.length - 1]), label: DATA.parameters[state.axis], unit: metric.unit, percentages: shares });
  let floor = xs.map(() => 0);
  layers.forEach((layer, at) => {
    const ceiling = layer.map((value, k) => floor[k] + (shares ? value / (sums[k] || 1) : value));
    const points = [...xs.map((value, k) => [value, ceiling[k]]), ...xs.map((value, k) => [value, floor[k]]).reverse()];
    const name = at < shown.length ? pathName(shown[at]) : "all others";
    const area = shape("path", { class: `layer layer${at}`, d: pathOf(x, y, points) + "Z" }, shape("title", {}, name));
    if (at < shown.length) area.addEventListener("click", () => openPath(shown[at]));
    frame.svg.append(area);
    floor = ceiling;
  });
  const measured = Math.max(...DATA.points.map((point) => point[state.axis]));
  if (measured < xs[xs.length - 1]) {
    const at = x.place(measured);
    frame.svg.append(shape("line", { class: "limit", x1: at, x2: at, y1: FRAME.top, y2: frame.height - FRAME.bottom }));
    frame.svg.append(shape("text", { x: at + 4, y: FRAME.top - 6 }, "predicted →"));
  }
  if (!shares) measuredTotals(state.metric).forEach((value, configuration) => {
    const point = DATA.points[configuration];
    if (point.every((one, at) => at === state.axis || one === target[at]) && Number.isFinite(value))
      frame.svg.append(shape("circle", { class: "mean", cx: x.place(point[state.axis]), cy: y.place(Math.min(value, top)), r: 4 }, shape("title", {}, `measured: ${quantity(value, metric.unit)}`)));
  });
  stackLegend(shown, models.length > shown.length, layers, sums, xs);
}

// Draws the legend of the layers. others: whether there are further call paths that have no layer.
function stackLegend(shown, others, layers, sums, xs) {
  const labels = labelsApart(shown);
  const last = xs.length - 1;
  const share = (at, k) => percent(sums[k] ? layers[at][k] / sums[k] : NaN, 0);
  const entries = shown.map((path, at) => {
    const button = element("button", { type: "button", title: pathName(path) }, labels[at]);
    button.addEventListener("click", () => openPath(path));
    return element("li", {}, element("i", { class: `key layer${at}`, "aria-hidden": "true" }), button, ` ${share(at, 0)} → ${share(at, last)}`);
  });
  const rest = shown.length;
  if (others) entries.push(element("li", {}, element("i", { class: `key layer${rest}`, "aria-hidden": "true" }), `all others ${share(rest, 0)} → ${share(rest, last)}`));
  byId("stack-legend").replaceChildren(...entries);
  const largest = (k) => shown.reduce((best, _, at) => (layers[at][k] > layers[best][k] ? at : best), 0);
  const [from, to] = [largest(0), largest(last)];
  const name = DATA.parameters[state.axis];
  const begin = `${labels[from]} leads at ${name}=${numberText(xs[0])} (${share(from, 0)})`;
  const end = from === to ? `and still at ${name}=${numberText(xs[last])} (${share(to, last)})` : `${labels[to]} has taken over at ${name}=${numberText(xs[last])} (${share(to, last)})`;
  byId("stack-status").textContent = shown.length ? `${begin}, ${end}${DATA.parameters.length > 1 ? `; all at ${othersText(targetPoint(), state.axis)}` : ""}` : "";
  byId("stack").setAttribute("aria-label", byId("stack-status").textContent);
}

function startStack() {
  byId("stack-card").hidden = isSingle;
  byId("stack-shares").addEventListener("change", drawStack);
}
