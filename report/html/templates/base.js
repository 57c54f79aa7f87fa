// SPDX-License-Identifier: Apache-2.0
// Common parts of all scripts: the data of the report (DATA, see report/html/data.py), elements of the page, the call
// tree, measured values of call paths, and the selection of the user (state).

const DATA = JSON.parse(document.getElementById("quipu-data").textContent);
const SVG = document.querySelector("#plot svg").namespaceURI;
const byId = (id) => document.getElementById(id);
// Returns an empty map for names from files. Unlike {}, it does not inherit names such as constructor and toString.
const byName = () => Object.create(null);

function filled(node, attributes, content) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...content);
  return node;
}
const element = (name, attributes = {}, ...content) => filled(document.createElement(name), attributes, content);
const shape = (name, attributes = {}, ...content) => filled(document.createElementNS(SVG, name), attributes, content);

// ---- the call tree. The start and the end of MPI are not part of the program, so they have no caller here. ----
const START_AND_END = "start and end of MPI";
const isStartOrEnd = DATA.parent.map(() => false);
for (const node of DATA.start_and_end) isStartOrEnd[node] = true;
const childrenOf = DATA.parent.map(() => []);
const roots = [];
const startAndEnd = [];
const depthOf = DATA.parent.map(() => 0);
const callerOf = DATA.parent.map((parent, node) => (parent >= 0 && isStartOrEnd[parent] === isStartOrEnd[node] ? parent : -1));
callerOf.forEach((caller, node) => {
  if (caller >= 0) childrenOf[caller].push(node);
  else (isStartOrEnd[node] ? startAndEnd : roots).push(node);
  depthOf[node] = caller >= 0 ? depthOf[caller] + 1 : isStartOrEnd[node] ? 1 : 0;
});
const regionOf = (path) => DATA.regions[DATA.region[path]];
const metricByName = new Map(DATA.metrics.map((metric) => [metric.name, metric]));

function ancestry(path) {
  const chain = [];
  for (let node = path; node >= 0; node = DATA.parent[node]) chain.unshift(node);
  return chain;
}

const pathName = (path) => ancestry(path).map((node) => regionOf(node).short).join(" → ");

// Returns short names of call paths. If several of `others` have the same name, the nearest callers that distinguish
// them precede the name.
function labelsApart(paths, others = paths) {
  const stepsOf = (path) => ancestry(path).map((node) => regionOf(node).short).reverse();
  const chains = others.map(stepsOf);
  return paths.map((path) => {
    const own = stepsOf(path);
    const alike = chains.filter((chain, at) => others[at] !== path && chain[0] === own[0]);
    const apart = new Set(alike.map((chain) => own.findIndex((name, at) => chain[at] !== name)).filter((at) => at > 0));
    const kept = [0, ...[...apart].sort((a, b) => a - b)];
    return kept.map((at, place) => `${own[at]}${place && at > kept[place - 1] + 1 ? " → …" : ""}`).reverse().join(" → ");
  });
}

// Returns a short name of a call path that distinguishes it from all others.
function nameApart(path) {
  const alike = DATA.parent.map((_, other) => other).filter((other) => regionOf(other).short === regionOf(path).short);
  return labelsApart([path], alike)[0];
}

// All call paths, each followed by the call paths below it. A subtree is therefore a contiguous part of this list.
const preorder = new Int32Array(DATA.parent.length);
const placeOf = new Int32Array(DATA.parent.length);
const sizes = new Int32Array(DATA.parent.length).fill(1);
for (let node = sizes.length - 1; node >= 0; node--) if (callerOf[node] >= 0) sizes[callerOf[node]] += sizes[node];
for (let stack = [...startAndEnd, ...roots], at = 0; stack.length; at++) {
  const node = stack.pop();
  preorder[at] = node;
  placeOf[node] = at;
  for (const child of childrenOf[node]) stack.push(child);
}

const subtreeSize = (path) => sizes[path];
const subtree = (path) => preorder.subarray(placeOf[path], placeOf[path] + sizes[path]);

// Whether there is only one configuration. The page then has no sections with plots over a parameter.
const isSingle = DATA.points.length === 1;

// ---- values: for each metric, scope ("exclusive", "inclusive"), call path and configuration a list of repetitions ----
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
  for (let at = 0; at < values.length; at++) {
    const [known, value] = [list[at], values[at]];
    if (value === null) continue;
    list[at] = known === undefined || known === null ? value : largest ? Math.max(known, value) : known + value;
  }
}

// Returns a list of repetitions with the mean instead of missing ones (null), which would count as 0 in sums.
function withoutGaps(list) {
  if (!list.includes(null)) return list;
  const middle = mean(list);
  return Number.isFinite(middle) ? list.map((value) => value ?? middle) : list;
}

// Returns the repetitions of the sum of several call paths; of their maximum if `largest`.
function repetitionsOver(metric, paths, configuration, largest) {
  const list = [];
  const all = DATA.values[metric];
  let same = null;
  for (const node of paths) {
    const series = all[node];
    const cell = series === null || typeof series === "number" ? series : series[configuration];
    if (cell === null) continue;
    if (typeof cell === "number") same = same === null ? cell : largest ? Math.max(same, cell) : same + cell;
    else combineInto(list, withoutGaps(cell), largest);
  }
  if (same !== null) combineInto(list, new Array(DATA.repetitions[metric][configuration]).fill(same), largest);
  return list;
}

// Returns the repetitions of one call path. They are not cached, because a large tree would fill the memory.
function repetitionsOf(metric, scope, path, configuration) {
  if (scope === "exclusive") return repetitions(metric, path, configuration);
  return repetitionsOver(metric, subtree(path), configuration, metricByName.get(metric).over_locations === "max");
}

// Returns the list of repetitions of each call path. Inclusive values are summed (or maximized) for each repetition.
function valuesAt(metric, scope, configuration) {
  const key = [metric, scope, configuration].join("\n");
  if (inclusiveCache.has(key)) return inclusiveCache.get(key);
  const values = DATA.parent.map((_, path) => repetitions(metric, path, configuration).slice());
  if (scope === "inclusive") {
    const largest = metricByName.get(metric).over_locations === "max";
    values.forEach((list, node) => (values[node] = withoutGaps(list)));
    for (let node = values.length - 1; node >= 0; node--) {
      if (callerOf[node] >= 0) combineInto(values[callerOf[node]], values[node], largest);
    }
  }
  if (inclusiveCache.size > 8) inclusiveCache.clear();
  inclusiveCache.set(key, values);
  return values;
}

const mediansCache = new WeakMap();

// Returns the median over repetitions of each call path.
function mediansAt(metric, scope, configuration) {
  const values = valuesAt(metric, scope, configuration);
  if (!mediansCache.has(values)) mediansCache.set(values, values.map(median));
  return mediansCache.get(values);
}

// Returns NaN for the time of a function that was only counted, because the time of its caller contains its time.
// MPI operations always have times.
function withoutCounted(value, node, metric) {
  const counted = value === 0 && metric === "time" && metricByName.has("visits") && regionOf(node).kind !== "mpi";
  return counted && mediansAt("visits", "exclusive", state.configuration)[node] > 0 ? NaN : value;
}

function mean(list) {
  const known = list.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : NaN;
}

// Returns the median of a list of repetitions, because one slow repetition hardly changes it.
function median(list) {
  const known = list.filter((value) => value !== null && value !== undefined && !Number.isNaN(value)).sort((a, b) => a - b);
  const half = known.length >> 1;
  if (!known.length) return NaN;
  return known.length % 2 ? known[half] : (known[half - 1] + known[half]) / 2;
}

// ---- the selection of the user: metric, scope, configuration, call path ----
const firstMetric = DATA.metrics.length ? DATA.metrics[0].name : "";
const firstConfiguration = Math.max(DATA.oversubscribed.lastIndexOf(false), DATA.oversubscribed.every(Boolean) ? DATA.points.length - 1 : 0);

// Returns the root with the largest value of the first metric. There may be several roots, because code that ran before
// main is a separate root.
function largestRoot() {
  const sums = roots.map((path) => (firstMetric ? median(repetitionsOf(firstMetric, "inclusive", path, firstConfiguration)) || 0 : 0));
  return roots.length ? roots[sums.indexOf(Math.max(...sums))] : -1;
}

const state = {
  metric: firstMetric,
  scope: "inclusive",
  configuration: firstConfiguration,
  sort: "value",
  path: largestRoot(),
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
