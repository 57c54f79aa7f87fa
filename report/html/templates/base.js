// The data of the report, elements, numbers as text, values by call path.

const DATA = JSON.parse(document.getElementById("quipu-data").textContent);
const SVG = document.querySelector("#plot svg").namespaceURI;
const byId = (id) => document.getElementById(id);

function element(name, attributes = {}, ...content) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...content);
  return node;
}

function shape(name, attributes = {}, ...content) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...content);
  return node;
}

function three(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-3) return value.toExponential(1);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

function quantity(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (unit === "s") {
    if (size === 0) return "0 s";
    if (size >= 99999.5) return value.toExponential(2) + " s";
    for (const [factor, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]) if (size >= factor * 0.9995) return three(value / factor) + " " + name;
    return three(value / 1e-9) + " ns";
  }
  const suffix = unit === "1" ? "" : unit;
  const spaced = suffix ? " " + suffix : "";
  if (size < 99999.5 && (Number.isInteger(value) || size >= 9999.5)) return value.toFixed(0) + spaced;
  if (size < 999.5) return three(value) + spaced;
  if (size >= 1e18) return value.toExponential(2) + spaced;
  for (const [factor, prefix] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= factor * 0.9995) return three(value / factor) + " " + prefix + suffix;
  return three(value) + spaced;
}

function plainNumber(value) {
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? String(value) : String(Number(value.toPrecision(6)));
}

const percent = (fraction) => (Number.isFinite(fraction) ? (100 * fraction).toFixed(1) + "%" : "–");

// ---- the call tree ----
const childrenOf = DATA.parent.map(() => []);
const roots = [];
const depthOf = DATA.parent.map(() => 0);
DATA.parent.forEach((parent, node) => {
  if (parent < 0) roots.push(node);
  else {
    childrenOf[parent].push(node);
    depthOf[node] = depthOf[parent] + 1;
  }
});
const regionOf = (path) => DATA.regions[DATA.region[path]];
const metricByName = new Map(DATA.metrics.map((metric) => [metric.name, metric]));

function ancestry(path) {
  const chain = [];
  for (let node = path; node >= 0; node = DATA.parent[node]) chain.unshift(node);
  return chain;
}

function* subtree(path) {
  const stack = [path];
  while (stack.length) {
    const node = stack.pop();
    yield node;
    stack.push(...childrenOf[node]);
  }
}

// ---- values: per metric and scope, for one configuration: the list of repetitions ----
function repetitions(metric, path, configuration) {
  const series = DATA.values[metric][path];
  if (series === null) return [];
  if (typeof series === "number") return new Array(DATA.repetitions[metric][configuration]).fill(series);
  const cell = series[configuration];
  if (cell === null) return [];
  return typeof cell === "number" ? new Array(DATA.repetitions[metric][configuration]).fill(cell) : cell;
}

const inclusiveCache = new Map();

function combineInto(list, values, largest) {
  values.forEach((value, at) => {
    const known = list[at];
    if (value === null) return;
    list[at] = known === undefined || known === null ? value : largest ? Math.max(known, value) : known + value;
  });
}

// The repetitions of one call path; nothing is kept, for all configurations of a large tree would fill the memory.
function repetitionsOf(metric, scope, path, configuration) {
  if (scope === "exclusive") return repetitions(metric, path, configuration);
  const list = [];
  const largest = metricByName.get(metric).over === "max";
  for (const node of subtree(path)) combineInto(list, repetitions(metric, node, configuration), largest);
  return list;
}

// Arrays over call paths of the lists of repetitions, inclusive values summed (or maximized) repetition by repetition.
function valuesAt(metric, scope, configuration) {
  const key = [metric, scope, configuration].join("\n");
  if (inclusiveCache.has(key)) return inclusiveCache.get(key);
  const values = DATA.parent.map((_, path) => repetitions(metric, path, configuration).slice());
  if (scope === "inclusive") {
    const largest = metricByName.get(metric).over === "max";
    for (let node = values.length - 1; node >= 0; node--) {
      const parent = DATA.parent[node];
      if (parent < 0) continue;
      combineInto(values[parent], values[node], largest);
    }
  }
  if (inclusiveCache.size > 8) inclusiveCache.clear();
  inclusiveCache.set(key, values);
  return values;
}

function mean(list) {
  const known = list.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : NaN;
}

// ---- what is chosen ----
const state = {
  metric: DATA.metrics.length ? DATA.metrics[0].name : "",
  scope: "inclusive",
  configuration: DATA.points.length - 1,
  sort: "value",
  path: roots.length ? roots[0] : -1,
  axis: 0,
  fixed: [],
  target: DATA.target.slice(),
};
const listeners = [];
const onChange = (listener) => listeners.push(listener);
function choose(update) {
  Object.assign(state, update);
  for (const listener of listeners) listener(update);
}

const modelSets = new Map();
function modelsOf(metric) {
  if (!modelSets.has(metric)) modelSets.set(metric, new ModelSet(metricByName.get(metric)));
  return modelSets.get(metric);
}
