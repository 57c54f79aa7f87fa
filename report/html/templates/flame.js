// SPDX-License-Identifier: Apache-2.0
// Draws the inclusive values of a metric as an icicle or flame graph. With a second experiment, colours show the changes.

const FRAME_HEIGHT = 20;
const LEAST_WIDTH = 0.8; // pixels; narrower frames are not drawn
let zoomed = -1;
let laidOut = [];

// Returns the inclusive values of all call paths: measured at the chosen configuration, or predicted at the target.
function flameValues() {
  if (byId("flame-values").value === "target") return modelsOf(state.metric).predictions("inclusive", state.target).map((one) => one?.middle ?? 0);
  return valuesAt(state.metric, "inclusive", state.configuration).map(mean).map((value) => (value > 0 ? value : 0));
}

const beforeCache = new Map();

// Returns the inclusive values of all call paths in the experiment to compare with.
function valuesBefore() {
  const key = `${state.metric}\n${state.configuration}`;
  if (!beforeCache.has(key)) {
    const values = DATA.against.values[state.metric].map((series) => {
      const cell = Array.isArray(series) ? series[state.configuration] : series;
      return cell ?? 0;
    });
    for (let node = values.length - 1; node >= 0; node--) if (callerOf[node] >= 0) values[callerOf[node]] += values[node];
    if (beforeCache.size > 8) beforeCache.clear();
    beforeCache.set(key, values);
  }
  return beforeCache.get(key);
}

const isCompared = () => Boolean(DATA.against && DATA.against.values[state.metric] && byId("flame-values").value !== "target");

// Returns the number of the colour of a change, from -4 (much less) to 4 (much more); 0 for changes below 1 %.
function changeClass(before, after) {
  if (before === after) return "d0";
  const ratio = before > 0 ? after / before : Infinity;
  const size = Math.abs(Math.log(ratio));
  const step = size < 0.01 ? 0 : size < 0.1 ? 1 : size < 0.4 ? 2 : size < 1 ? 3 : 4;
  return ratio > 1 ? `d${step}` : step ? `d-${step}` : "d0";
}

const hueOf = (name) => [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 5, 0);

function layOut(values, width) {
  laidOut = [];
  const heads = zoomed >= 0 ? [zoomed] : roots;
  const whole = heads.reduce((sum, head) => sum + values[head], 0);
  if (!(whole > 0)) return 0;
  const scale = width / whole;
  const stack = [];
  let left = 0;
  let deepest = 0;
  for (const head of heads) {
    stack.push([head, left, 0]);
    left += values[head] * scale;
  }
  while (stack.length) {
    const [node, x, depth] = stack.pop();
    const size = values[node] * scale;
    if (size < LEAST_WIDTH) continue;
    laidOut.push({ node, x, depth, size });
    deepest = Math.max(deepest, depth);
    let at = x;
    for (const child of childrenOf[node].slice().sort((a, b) => values[b] - values[a] || a - b)) {
      stack.push([child, at, depth + 1]);
      at += values[child] * scale;
    }
  }
  return deepest + 1;
}

function drawFlame() {
  const svg = byId("flame-graph");
  const width = Math.max(300, byId("frames").clientWidth - 2 || 900);
  const metric = metricByName.get(state.metric);
  const adds = metric.over_locations !== "max";
  const values = adds ? flameValues() : [];
  const levels = adds ? layOut(values, width) : 0;
  if (!adds) laidOut = [];
  const height = Math.max(2, levels) * FRAME_HEIGHT;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  const upward = byId("flame-kind").value === "flame";
  const before = isCompared() ? valuesBefore() : null;
  const nodes = laidOut.map(({ node, x, depth, size }) => {
    const region = regionOf(node);
    const y = (upward ? levels - 1 - depth : depth) * FRAME_HEIGHT;
    const colour = before ? changeClass(before[node], values[node]) : region.kind === "mpi" ? "fm" : `f${hueOf(region.name)}`;
    const group = shape("g", { class: node === state.path ? "frame chosen" : "frame", "data-path": node }, shape("rect", { class: colour, x: x.toFixed(2), y, width: Math.max(0.5, size - 0.6).toFixed(2), height: FRAME_HEIGHT - 1 }), shape("title", {}, frameText(node, values, before)));
    const room = Math.floor((size - 6) / 6.6);
    if (room >= 3) group.append(shape("text", { x: (x + 4).toFixed(1), y: y + 14 }, region.short.length > room ? region.short.slice(0, room - 1) + "…" : region.short));
    return group;
  });
  if (!nodes.length) nodes.push(shape("text", { x: width / 2, y: 24, "text-anchor": "middle", class: "empty" }, adds ? "nothing to show here" : `${state.metric} does not add up over call paths`));
  svg.replaceChildren(...nodes);
  svg.setAttribute("aria-label", `${upward ? "Flame graph" : "Icicle"} of ${state.metric}, inclusive: ${laidOut.length} call paths are wide enough to be drawn`);
  byId("flame-reset").disabled = zoomed < 0;
  byId("flame-legend").hidden = !before;
  flameStatus(values, before);
  drawChanges(values, before);
}

function frameText(node, values, before) {
  const unit = metricByName.get(state.metric).unit;
  const whole = roots.reduce((sum, head) => sum + values[head], 0);
  const text = `${regionOf(node).display}: ${quantity(values[node], unit)}, ${percent(whole > 0 ? values[node] / whole : NaN)} of the program`;
  if (!before) return text;
  return `${text}; before ${quantity(before[node], unit)}${before[node] > 0 ? ` (${factorText(values[node] / before[node])})` : " (new)"}`;
}

function flameStatus(values, before) {
  const chosen = laidOut.some((one) => one.node === state.path) ? state.path : laidOut.length ? laidOut[0].node : -1;
  byId("frame-status").textContent = chosen >= 0 ? frameText(chosen, values, before) : "";
}

// Shows a table of the call paths whose exclusive values differ most between the two experiments.
function drawChanges(values, before) {
  const table = byId("differences");
  table.hidden = !before;
  if (!before) return;
  const unit = metricByName.get(state.metric).unit;
  const own = (list, node) => list[node] - childrenOf[node].reduce((sum, child) => sum + list[child], 0);
  const rows = DATA.parent
    .map((_, node) => ({ node, old: own(before, node), now: own(values, node) }))
    .filter((one) => Math.abs(one.now - one.old) > 1e-9 * Math.max(one.now, one.old) && !isStartOrEnd[one.node])
    .sort((a, b) => Math.abs(b.now - b.old) - Math.abs(a.now - a.old))
    .slice(0, 15)
    .map(({ node, old, now }) => element("tr", {}, pathCell(node, state.metric), element("td", { class: "number" }, quantity(old, unit)), element("td", { class: "number" }, quantity(now, unit)), element("td", { class: "number" }, old > 0 ? (now > 0 ? factorText(now / old) : "gone") : "new")));
  table.tBodies[0].replaceChildren(...(rows.length ? rows : [element("tr", {}, element("td", { colspan: 4 }, `no call path differs in ${state.metric} at this configuration`))]));
}

// Marks the frame of the chosen call path, without drawing the other frames again.
function markFrame() {
  for (const frame of document.querySelectorAll("#flame-graph .frame")) frame.setAttribute("class", Number(frame.dataset.path) === state.path ? "frame chosen" : "frame");
  byId("frame-status").textContent = document.querySelector("#flame-graph .frame.chosen title")?.textContent ?? "";
}

function zoomTo(node) {
  zoomed = node;
  drawFlame();
}

function flameKey(event) {
  const here = laidOut.find((one) => one.node === state.path) || laidOut[0];
  if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
  const upward = byId("flame-kind").value === "flame";
  const row = (depth) => laidOut.filter((one) => one.depth === depth).sort((a, b) => a.x - b.x);
  const beside = (step) => row(here.depth)[row(here.depth).indexOf(here) + step];
  const below = () => row(here.depth + 1).find((one) => DATA.parent[one.node] === here.node);
  const above = () => laidOut.find((one) => one.node === callerOf[here.node]);
  const moves = { ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), ArrowDown: upward ? above : below, ArrowUp: upward ? below : above };
  if (event.key === "Enter") zoomTo(here.node);
  else if (event.key === "Escape") zoomTo(-1);
  else if (moves[event.key]) {
    const next = moves[event.key]();
    if (next) openPath(next.node);
  } else return;
  event.preventDefault();
}

function startFlame() {
  for (const id of ["flame-kind", "flame-values"]) byId(id).addEventListener("change", drawFlame);
  byId("flame-reset").addEventListener("click", () => zoomTo(-1));
  byId("frames").addEventListener("keydown", flameKey);
  const nodeOf = (event) => event.target.closest(".frame")?.dataset.path;
  byId("frames").addEventListener("click", (event) => nodeOf(event) !== undefined && openPath(Number(nodeOf(event))));
  byId("frames").addEventListener("dblclick", (event) => nodeOf(event) !== undefined && zoomTo(Number(nodeOf(event))));
  if (DATA.against) byId("flame-title").textContent += `, compared with ${DATA.against.name}`;
}
