// The chosen call path (regions, models, plot controls) and the ranking at a target point.

function drawDetail() {
  const crumbs = ancestry(state.path).flatMap((node, at) => {
    const button = element("button", { type: "button" }, regionOf(node).display);
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
  const at = (scope) => quantity(mean(valuesAt(state.metric, scope, state.configuration)[state.path]), unit);
  const facts = [["kind", region.kind]];
  if (region.file) facts.push(["source", region.file + (region.line ? ":" + region.line : "")]);
  if (region.name !== region.display) facts.push(["linker name", region.name]);
  facts.push([`${state.metric} inclusive`, at("inclusive")], [`${state.metric} exclusive`, at("exclusive")]);
  byId("region").replaceChildren(...facts.map(([label, text]) => element("div", {}, element("dt", {}, label), element("dd", {}, text))));
}

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
    if (!summed && own.prior) basis.append(" ", element("span", { class: "tag prior", title: own.prior }, "prior"));
    if (!summed) for (const note of own.notes || []) basis.append(element("div", { class: "status" }, note));
    if (!summed) basis.append(...behaviourLines(metric.name, state.path));
    const smape = summed ? errorOfSum(metric.name, state.path, model) : own.smape;
    const row = element("tr", { class: metric.name === state.metric ? "chosen" : "" });
    row.append(element("td", {}, metric.name + (metric.unit === "1" ? "" : ` [${metric.unit}]`)), element("td", {}, formulaNode(model)));
    row.append(element("td", { class: "number" }, percent((smape ?? NaN) / 100)), basis);
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
  state.fixed = DATA.points.length ? DATA.points[DATA.points.length - 1].slice() : [];
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
      });
      return [element("label", {}, `${name} = `, select), " "];
    });
    byId("fixed").replaceChildren(...selects);
  };
  const spread = (list) => list.length > 2 && list[0] > 0 && list[list.length - 1] / list[0] >= 8;
  byId("logx").checked = values.length > 0 && spread(values[state.axis]);
  byId("axis").addEventListener("change", (event) => {
    state.axis = Number(event.target.value);
    byId("logx").checked = spread(values[state.axis]);
    drawFixed();
    drawPlot();
  });
  for (const id of ["logx", "logy", "extend"]) byId(id).addEventListener("change", drawPlot);
  drawFixed();
}

// ---- ranking ----
function drawRanking() {
  const point = state.target;
  const status = byId("target-status");
  const body = byId("ranked").tBodies[0];
  const wrong = DATA.parameters.filter((_, at) => !(point[at] > 0));
  status.className = "status";
  if (wrong.length || !DATA.metrics.length) {
    status.textContent = wrong.length ? `give a number above 0 for ${wrong.join(", ")}` : "";
    return body.replaceChildren();
  }
  const metric = metricByName.get(state.metric);
  const set = modelsOf(state.metric);
  const list = [];
  let whole = 0;
  for (let path = 0; path < DATA.parent.length; path++) {
    const own = set.predict(path, "exclusive", point);
    if (own && Number.isFinite(own.middle)) whole = metric.over_locations === "max" ? Math.max(whole, own.middle) : whole + own.middle;
    if (state.scope === "exclusive" && own && Number.isFinite(own.middle)) list.push([path, own]);
  }
  if (state.scope === "inclusive") list.push(...inclusivePredictions(set, point));
  list.sort((a, b) => b[1].middle - a[1].middle || a[0] - b[0]);
  const outside = outsideRange(point);
  if (outside.length) {
    status.classList.add("outside");
    status.textContent = `extrapolation: ${outside.join(", ")} outside of the measured range`;
  } else status.textContent = list.length ? "within the measured range" : `no models of ${state.metric}`;
  body.replaceChildren(...list.slice(0, 25).map(([path, one], at) => rankedRow(path, one, at, whole, metric, set, outside)));
}

function inclusivePredictions(set, point) {
  const sums = DATA.parent.map((_, path) => set.predict(path, "exclusive", point));
  for (let node = sums.length - 1; node >= 0; node--) {
    const parent = DATA.parent[node];
    if (parent >= 0) sums[parent] = set.combined(sums[parent], sums[node]);
  }
  return [...sums.entries()].filter(([, one]) => one && Number.isFinite(one.middle));
}

/* The callers of a call path in small letters, the nearest ones with short names. */
function callersOf(path) {
  const callers = ancestry(path).slice(0, -1).map(regionOf);
  if (!callers.length) return [];
  const title = callers.map((region) => region.display).join(" → ");
  return [element("small", { title }, "in " + callers.slice(-3).map((region) => region.short).join(" → "))];
}

function rankedRow(path, one, at, whole, metric, set, outside) {
  const button = element("button", { type: "button" }, regionOf(path).display);
  button.addEventListener("click", () => {
    openPath(path);
    byId("detail").scrollIntoView({ block: "nearest" });
  });
  const name = element("td", { class: "path" }, button, ...callersOf(path));
  const { low, high } = one;
  const formula = element("td", { class: "model" });
  const model = set.formula(path, state.scope);
  if (model) formula.append(formulaNode(model));
  if (outside.length) formula.append(" ", element("span", { class: "tag" }, "extrapolation"));
  const row = element("tr", { "data-path": path, class: path === state.path ? "chosen" : "" });
  row.append(element("td", { class: "number" }, String(at + 1)), name);
  row.append(element("td", { class: "number" }, quantity(one.middle, metric.unit)));
  row.append(element("td", { class: "number interval" }, high > low ? `${quantity(low, metric.unit)} .. ${quantity(high, metric.unit)}` : "-"));
  row.append(element("td", { class: "number" }, percent(whole > 0 ? one.middle / whole : NaN)), formula);
  return row;
}

function markChosen(table) {
  for (const row of byId(table).tBodies[0].rows) row.className = Number(row.dataset.path) === state.path ? "chosen" : "";
}

// Inputs for the numbers of a point, which they change.
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
    if (byId("extend").checked) drawPlot();
  });
}
