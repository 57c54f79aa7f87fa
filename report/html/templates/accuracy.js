// SPDX-License-Identifier: Apache-2.0
// Draws a plot of modeled over measured values of all call paths, and a table of communication by MPI operation.

const MOST_DOTS = 2000;
const TOGETHER = 50; // number of dots in one SVG element, because thousands of elements would make the page slow

const circlePath = ({ x, y }, size) => `M${(x - size).toFixed(1)} ${y.toFixed(1)}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0`;

function drawAccuracy() {
  const frame = chartFrame("accuracy-plot");
  const metric = metricByName.get(state.metric);
  const set = modelsOf(state.metric);
  const dots = [];
  const weight = mediansAt(state.metric, "exclusive", state.configuration);
  const paths = [...set.own.keys()].sort((a, b) => (weight[b] || 0) - (weight[a] || 0));
  for (const path of paths) {
    if (dots.length > MOST_DOTS) break;
    DATA.points.forEach((point, configuration) => {
      const measured = median(repetitions(state.metric, path, configuration));
      const modeled = evaluate(set.own.get(path), point);
      if (measured > 0 && modeled > 0 && Number.isFinite(modeled)) dots.push({ path, point, measured, modeled, shared: DATA.oversubscribed[configuration] });
    });
  }
  byId("accuracy-status").textContent = "";
  if (!dots.length) return emptyChart(frame, `no models of ${state.metric} to compare`);
  const all = dots.flatMap((dot) => [dot.measured, dot.modeled]);
  const [low, high] = [all.reduce((a, b) => Math.min(a, b)) / 1.5, all.reduce((a, b) => Math.max(a, b)) * 1.5];
  const { x, y } = axesFor(frame, [low, high], [low, high], { logX: true, logY: true, label: `measured ${state.metric}`, side: `modeled ${state.metric}`, unit: metric.unit, xUnit: metric.unit });
  frame.svg.append(shape("path", { class: "ideal", d: pathOf(x, y, [[low, low], [high, high]]) }));
  for (const dot of dots) [dot.x, dot.y] = [x.place(dot.measured), y.place(dot.modeled)];
  for (const kind of ["point", "point oversubscribed", "mean", "mean oversubscribed"]) {
    const size = kind.startsWith("mean") ? 4.5 : 2.2;
    const same = dots.filter((dot) => kind === `${dot.path === state.path ? "mean" : "point"}${dot.shared ? " oversubscribed" : ""}`);
    for (let at = 0; at < same.length; at += TOGETHER) frame.svg.append(shape("path", { class: kind, d: same.slice(at, at + TOGETHER).map((dot) => circlePath(dot, size)).join("") }));
  }
  const hint = shape("title");
  frame.svg.append(hint);
  frame.svg.onpointermove = (event) => {
    const box = frame.svg.getBoundingClientRect();
    const scale = frame.width / box.width;
    const [left, down] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const far = (dot) => (dot.x - left) ** 2 + (dot.y - down) ** 2;
    const dot = dots.reduce((best, one) => (far(one) < far(best) ? one : best));
    hint.textContent = far(dot) > 36 ? "" : `${regionOf(dot.path).short} at ${pointText(DATA.parameters, dot.point)}: measured ${quantity(dot.measured, metric.unit)}, modeled ${quantity(dot.modeled, metric.unit)}`;
  };
  placeLegend(frame.svg, frame.width, [[shape("path", { class: "ideal", d: "M0 0L17 0" }), "equal"], [shape("circle", { class: "point", cx: 8, cy: 0, r: 3 }), "call path at a configuration"], [shape("circle", { class: "mean", cx: 8, cy: 0, r: 4.5 }), "chosen call path"]]);
  const errors = dots.map((dot) => Math.abs(dot.modeled - dot.measured) / dot.measured).sort((a, b) => a - b);
  const at = (part) => percent(errors[Math.min(errors.length - 1, Math.floor(part * errors.length))]);
  const left = paths.length - new Set(dots.map((dot) => dot.path)).size;
  byId("accuracy-status").textContent = `${state.metric}, exclusive: half of ${dots.length} values are within ${at(0.5)} of the model, 90 % within ${at(0.9)}${left > 0 ? `; ${left} call paths without values above 0, or smaller than these, are not drawn` : ""}`;
  frame.svg.setAttribute("aria-label", byId("accuracy-status").textContent);
}

const OF_OPERATIONS = ["visits", "bytes_sent", "bytes_received", "messages_sent", "messages_received", "time", "wait_time"];

function drawCommunication() {
  const shown = OF_OPERATIONS.filter((name) => metricByName.has(name));
  const groups = new Map();
  DATA.parent.forEach((_, path) => {
    if (regionOf(path).kind !== "mpi" || isStartOrEnd[path]) return;
    const name = regionOf(path).display;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(path);
  });
  byId("operations").hidden = !groups.size || !shown.length;
  if (byId("operations").hidden) {
    byId("communication-status").textContent = "the program called no operation of MPI that was measured";
    return;
  }
  const means = new Map(shown.map((name) => [name, mediansAt(name, "exclusive", state.configuration)]));
  const sum = (name, paths) => paths.reduce((total, path) => total + (means.get(name)[path] || 0), 0);
  // Waiting is only measured in some operations (docs/design/mpi-waiting.md). If it is 0 everywhere, it was not measured.
  const waiting = shown.includes("wait_time") ? DATA.points.map((_, at) => mediansAt("wait_time", "exclusive", at)) : [];
  const unmeasured = (name, paths) => name === "wait_time" && !waiting.some((own) => paths.some((path) => own[path]));
  const time = metricByName.has("time");
  const whole = time ? measuredTotals("time")[state.configuration] : NaN;
  const target = state.target.every((value) => value > 0);
  const set = time ? modelsOf("time") : null;
  const there = (paths) => paths.reduce((total, path) => total + (set.own.has(path) ? valueAt(set.own.get(path), state.target) : 0), 0);
  const program = time && target ? programAt("time", state.target) : NaN;
  const rows = [...groups].map(([name, paths]) => ({ name, paths, size: time ? sum("time", paths) : sum(shown[0], paths) })).sort((a, b) => b.size - a.size);
  const head = ["operation", ...shown.map((name) => name.replace("_", " ")), ...(time ? ["share of time", `time at ${target ? pointText(DATA.parameters, state.target) : "?"}`, "share there"] : [])];
  const table = byId("operations");
  table.tHead.replaceChildren(element("tr", {}, ...head.map((text, at) => element("th", at ? { class: "number", scope: "col" } : { scope: "col" }, text))));
  table.tBodies[0].replaceChildren(...rows.map(({ name, paths }) => {
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => openPath(paths.reduce((a, b) => ((means.get(shown[0])[b] || 0) > (means.get(shown[0])[a] || 0) ? b : a))));
    const cells = shown.map((metric) => element("td", { class: "number" }, unmeasured(metric, paths) ? "-" : quantity(sum(metric, paths), metricByName.get(metric).unit)));
    if (time) cells.push(element("td", { class: "number" }, percent(sum("time", paths) / whole)), element("td", { class: "number" }, target ? quantity(there(paths), "s") : "-"), element("td", { class: "number" }, percent(there(paths) / program)));
    return element("tr", {}, element("td", { class: "path" }, button, element("small", {}, `${paths.length} call path${paths.length === 1 ? "" : "s"}`)), ...cells);
  }));
  byId("communication-status").textContent = `at ${pointText(DATA.parameters, DATA.points[state.configuration])}, per rank`;
}
