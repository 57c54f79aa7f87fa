// SPDX-License-Identifier: Apache-2.0
// Shows the chosen call path (regions, models, controls of the plot), and the ranking of call paths at the target.

// Returns a button with the short name of a region. The full name appears when the pointer is over it.
const nameButton = (path) => element("button", { type: "button", title: regionOf(path).display }, regionOf(path).short);

function drawDetail() {
  const crumbs = ancestry(state.path).flatMap((node, at) => {
    const button = nameButton(node);
    button.addEventListener("click", () => openPath(node));
    return at ? [" → ", button] : [button];
  });
  byId("crumbs").replaceChildren(...crumbs);
  drawRegion();
  drawModels();
  drawPlot();
}

function drawRegion() {
  if (state.path < 0) return byId("region").replaceChildren();
  const region = regionOf(state.path);
  const unit = metricByName.get(state.metric).unit;
  const at = (scope) => quantity(withoutCounted(mediansAt(state.metric, scope, state.configuration)[state.path], state.path, state.metric), unit);
  const facts = region.short === region.display ? [] : [["name", region.display]];
  facts.push(["kind", region.kind]);
  if (region.file) facts.push(["source", region.file + (region.line ? ":" + region.line : "")]);
  if (region.name !== region.display) facts.push(["linker name", region.name]);
  facts.push([`${state.metric} inclusive`, at("inclusive")], [`${state.metric} exclusive`, at("exclusive")]);
  if (isStartOrEnd[state.path]) facts.push(["part of", START_AND_END + ", not of the program"]);
  byId("region").replaceChildren(...facts.map(([label, text]) => element("div", {}, element("dt", {}, label), element("dd", {}, text))));
}

// If a model is the sum of more call paths than this, its error is computed after the rest of the page is drawn.
const LATER = 200;

function drawModels() {
  const rows = [];
  for (const metric of DATA.metrics) {
    const set = modelsOf(metric.name);
    const own = set.own.get(state.path);
    const model = set.formula(state.path, state.scope);
    if (!model) {
      const reason = set.reasons.get(state.path);
      if (reason && state.scope === "exclusive")
        rows.push(element("tr", {}, element("td", {}, metric.name), element("td", { colspan: 3, class: "none" }, "no model: " + reason)));
      continue;
    }
    const summed = state.scope === "inclusive" && childrenOf[state.path].length > 0;
    const basis = element("td", {}, summed ? "sum over callees" : own.basis || "");
    if (set.oversubscribed(state.path, state.scope)) basis.append(" ", oversubscribedTag());
    if (!summed && own.prior) basis.append(" ", element("span", { class: "tag prior", title: own.prior }, "prior"));
    if (!summed) for (const note of own.notes || []) basis.append(element("div", { class: "status" }, note));
    if (!summed) basis.append(...behaviourLines(metric.name, state.path));
    const smape = element("td", { class: "number" });
    const fill = () => (smape.textContent = percent(((summed ? errorOfSum(metric.name, state.path, model) : own.smape) ?? NaN) / 100));
    if (summed && subtreeSize(state.path) > LATER) setTimeout(fill);
    else fill();
    const row = element("tr", { class: metric.name === state.metric ? "chosen" : "" });
    row.append(element("td", {}, metric.name + (metric.unit === "1" ? "" : ` [${metric.unit}]`)), element("td", {}, formulaNode(model, SHOWN_TERMS)));
    row.append(smape, basis);
    rows.push(row);
  }
  if (!rows.length) rows.push(element("tr", {}, element("td", { colspan: 4 }, "no models of this call path")));
  byId("models").tBodies[0].replaceChildren(...rows);
}

function openPath(path) {
  reveal(path);
  choose({ path });
  drawTree();
  intoView();
}

function option(value, text, selected) {
  const node = element("option", { value }, text);
  node.selected = selected;
  return node;
}

let drawFixed = () => {};

function startPlotControls() {
  const values = DATA.parameters.map((_, at) => [...new Set(DATA.points.map((point) => point[at]))].sort((a, b) => a - b));
  state.fixed = DATA.points.length ? DATA.points[middleConfiguration()].slice() : [];
  state.axis = Math.max(0, values.findIndex((list) => list.length === Math.max(...values.map((other) => other.length))));
  byId("axis").replaceChildren(...DATA.parameters.map((name, at) => option(at, name, at === state.axis)));
  byId("axis").disabled = DATA.parameters.length < 2;
  drawFixed = () => {
    const selects = DATA.parameters.flatMap((name, at) => {
      if (at === state.axis) return [];
      const select = element("select", { "aria-label": "value of " + name });
      select.append(...values[at].map((value) => option(value, numberText(value), value === state.fixed[at])));
      select.addEventListener("change", () => {
        state.fixed[at] = Number(select.value);
        drawPlot();
        drawProgram({ fixed: true });
      });
      return [element("label", {}, `${name} = `, select), " "];
    });
    byId("fixed").replaceChildren(...selects);
    byId("extend-axis").textContent = DATA.parameters[state.axis] ?? "value";
  };
  const spread = (list) => list.length > 2 && list[0] > 0 && list[list.length - 1] / list[0] >= 8;
  byId("logx").checked = values.length > 0 && spread(values[state.axis]);
  byId("axis").addEventListener("change", (event) => {
    state.axis = Number(event.target.value);
    byId("logx").checked = spread(values[state.axis]);
    drawFixed();
    drawPlot();
    drawProgram({ axis: true });
  });
  for (const id of ["logx", "logy", "extend"]) byId(id).addEventListener("change", drawPlot);
  drawFixed();
}

// ---- ranking ----
const oversubscribedTag = () => element("span", { class: "tag", title: "fitted to runs with more ranks than processors, whose times contain waiting for a processor" }, "oversubscribed");

function beyondTag(beyond) {
  if (!Object.keys(beyond).length) return [];
  const far = isFar(beyond);
  const title = `factor beyond the measurements of the model; benchmarks check predictions up to ${DATA.far} times`;
  return [" ", element("span", { class: far ? "tag far" : "tag", title }, `${beyondText(beyond)} beyond${far ? " (far)" : ""}`)];
}

function extrapolationText(point) {
  const beyond = timesBeyond(point, DATA.ranges);
  const parts = DATA.parameters.flatMap((name, at) => {
    const [low, high] = DATA.ranges[at].map(numberText);
    return name in beyond ? [`${name}=${numberText(point[at])} is ${factorText(beyond[name])} beyond the measured ${low} to ${high}`] : [];
  });
  if (!parts.length) return "";
  const far = isFar(beyond);
  return `${far ? "far extrapolation" : "extrapolation"}: ${parts.join(", ")}${far ? `; predictions and their intervals are checked up to ${DATA.far} times beyond` : ""}`;
}

function drawRanking() {
  const point = state.target;
  const status = byId("target-status");
  const table = byId("ranked");
  const wrong = DATA.parameters.filter((_, at) => !(point[at] > 0));
  byId("ranking-title").textContent = `Ranking at ${wrong.length ? "?" : pointText(DATA.parameters, point)}`;
  status.className = "status";
  byId("target-total").replaceChildren();
  if (wrong.length || !DATA.metrics.length) {
    status.textContent = wrong.length ? `give a number above 0 for ${wrong.join(", ")}` : "";
    table.tBodies[0].replaceChildren();
    return table.tFoot.replaceChildren();
  }
  const metric = metricByName.get(state.metric);
  const set = modelsOf(state.metric);
  const shown = set.predictions(state.scope, point);
  const adds = metric.over_locations !== "max";
  const sumOver = (outside) => set.combined(set.predictions("exclusive", point).filter((_, path) => isStartOrEnd[path] === outside));
  const [program, outside] = [sumOver(false), sumOver(true)];
  const whole = program ? program.middle : 0;
  const ranked = (flag) => [...shown.entries()].filter(([path, one]) => one && isStartOrEnd[path] === flag).sort((a, b) => b[1].middle - a[1].middle || a[0] - b[0]);
  const list = ranked(false);
  const text = extrapolationText(point);
  status.textContent = text || (list.length ? "within the measured range" : `no models of ${state.metric}`);
  status.className = text ? "status outside" : "status";
  if (adds && program) byId("target-total").append(...totals(program, outside, metric, set, point));
  const rowOf = ([path, one], at) => rankedRow(path, one, isStartOrEnd[path] ? "" : String(at + 1), whole, metric, set);
  table.tBodies[0].replaceChildren(...list.slice(0, 25).map(rowOf));
  const below = ranked(true).slice(0, 25).map(rowOf);
  if (below.length) below.unshift(element("tr", {}, element("th", { colspan: 6, scope: "colgroup" }, `${START_AND_END}, not part of the program`)));
  table.tFoot.replaceChildren(...below);
}

const intervalText = (low, high, unit) => (low > 0 && high > DATA.open * low ? "not determined" : `${quantity(low, unit)} .. ${quantity(high, unit)}`);
const withInterval = (one, unit) => quantity(one.middle, unit) + (one.high > one.low ? `, 90 % interval ${intervalText(one.low, one.high, unit)}` : "");

// Returns elements with the totals of the program, and separately of the start and the end of MPI.
function totals(program, outside, metric, set, point) {
  const entry = (label, ...content) => element("div", {}, element("dt", {}, label), element("dd", {}, ...content));
  const own = set.predictions("exclusive", point);
  let shared = 0;
  own.forEach((one, path) => (shared += one && !isStartOrEnd[path] && set.oversubscribed(path, "exclusive") ? one.middle : 0));
  const part = shared > 0 ? `, ${percent(shared / program.middle, 0)} of it from oversubscribed runs` : "";
  const facts = [entry(`program, ${metric.name}`, withInterval(program, metric.unit) + part)];
  if (outside) facts.push(entry(START_AND_END, withInterval(outside, metric.unit)));
  return facts;
}

/* Returns the callers of a call path in small letters. The nearest callers have short names. */
function callersOf(path) {
  const callers = ancestry(path).slice(0, -1).map(regionOf);
  if (!callers.length) return [];
  const title = callers.map((region) => region.display).join(" → ");
  return [element("small", { title }, "in " + callers.slice(-3).map((region) => region.short).join(" → "))];
}

function rankedRow(path, one, place, whole, metric, set) {
  const button = nameButton(path);
  button.addEventListener("click", () => {
    openPath(path);
    byId("detail").scrollIntoView({ block: "nearest" });
  });
  const name = element("td", { class: "path" }, button, ...callersOf(path));
  const { low, high } = one;
  const formula = element("td", { class: "model" });
  const model = set.formula(path, state.scope);
  if (model) formula.append(formulaNode(model, SHOWN_TERMS));
  formula.append(...beyondTag(set.beyond(path, state.scope, state.target)));
  if (set.oversubscribed(path, state.scope)) formula.append(" ", oversubscribedTag());
  const row = element("tr", { "data-path": path, class: path === state.path ? "chosen" : "" });
  row.append(element("td", { class: "number" }, place), name);
  row.append(element("td", { class: "number" }, quantity(one.middle, metric.unit)));
  row.append(element("td", { class: "number interval" }, high > low ? intervalText(low, high, metric.unit) : "-"));
  row.append(element("td", { class: "number" }, isStartOrEnd[path] ? "" : percent(whole > 0 ? one.middle / whole : NaN)), formula);
  return row;
}

function markChosen(table) {
  for (const row of byId(table).rows) if (row.dataset.path) row.className = Number(row.dataset.path) === state.path ? "chosen" : "";
}

// Creates input fields for the parameter values of a point. Input changes `point`, and calls `redraw`.
function targetInputs(form, point, redraw) {
  DATA.parameters.forEach((name, at) => {
    const input = element("input", { type: "text", inputmode: "decimal", value: numberText(point[at]), "aria-label": name });
    input.addEventListener("input", () => {
      const value = Number(input.value.trim() || NaN);
      input.setAttribute("aria-invalid", !(value > 0));
      point[at] = value;
      redraw();
    });
    form.append(element("label", {}, name + " = ", input));
  });
  form.addEventListener("submit", (event) => event.preventDefault());
}

function startRanking() {
  targetInputs(byId("target"), state.target, () => {
    drawRanking();
    if (DATA.slowdowns) drawDiagnosis();
    if (byId("kernels-status")) byId("kernels-status").hidden = state.target.every((value, at) => value === DATA.target[at]);
    if (byId("extend").checked) drawPlot();
    if (state.target.every((value) => value > 0)) drawProgram({ target: true });
  });
}
