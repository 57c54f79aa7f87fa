// SPDX-License-Identifier: Apache-2.0
// Shows the call tree. Only the rows in view are elements of the page. The focus stays on the tree, and the attribute
// aria-activedescendant names the active row.

const ROW = 28;
const MOST_PRINTED = 100; // number of rows that are printed, a few pages
let printing = false; // while printing, the tree starts at its first row
const open = new Set();
let visible = [];
let matches = null; // call paths that match the search, and their ancestors
let needle = "";

const HEADING = -2; // stands for the line above the start and the end of MPI, instead of a call path

function measuredMeans() {
  return mediansAt(state.metric, state.scope, state.configuration);
}

// Returns the sum of some call paths and all call paths below them.
function wholeOf(heads) {
  const inclusive = mediansAt(state.metric, "inclusive", state.configuration);
  const values = heads.map((head) => inclusive[head]).filter(Number.isFinite);
  return metricByName.get(state.metric).over_locations === "max" ? Math.max(0, ...values) : values.reduce((a, b) => a + b, 0);
}

function ordered(nodes, weight) {
  const list = matches ? nodes.filter((node) => matches.has(node)) : nodes.slice();
  if (state.sort === "value") list.sort((a, b) => (weight[b] || 0) - (weight[a] || 0) || a - b);
  if (state.sort === "name") list.sort((a, b) => (regionOf(a).display < regionOf(b).display ? -1 : 1));
  return list;
}

function listRows() {
  const weight = measuredMeans();
  visible = [];
  const list = (heads) => {
    const stack = heads.reverse();
    while (stack.length) {
      const node = stack.pop();
      visible.push(node);
      if (open.has(node) || matches) for (const child of ordered(childrenOf[node], weight).reverse()) stack.push(child);
    }
  };
  list(ordered(roots, weight));
  const outside = ordered(startAndEnd, weight);
  if (outside.length) visible.push(HEADING);
  list(outside);
}

function drawTree() {
  listRows();
  const drawn = printing ? Math.min(visible.length, MOST_PRINTED) : visible.length;
  byId("rows").style.height = drawn * ROW + "px";
  byId("value-title").textContent = state.metric + (state.scope === "inclusive" ? " incl" : " excl");
  const total = DATA.parent.length;
  if (drawn < visible.length) byId("tree-status").textContent = `the first ${drawn} of ${visible.length} rows; fold or search to print others`;
  else byId("tree-status").textContent = matches
    ? `${[...matches.values()].filter(Boolean).length} of ${total} call paths match`
    : `${visible.filter((node) => node >= 0).length} of ${total} call paths shown · arrow keys move and fold, / searches`;
  drawRows();
}

function drawRows() {
  const tree = byId("tree");
  const weight = measuredMeans();
  const whole = wholeOf(roots);
  const first = printing ? 0 : Math.max(0, Math.floor(tree.scrollTop / ROW) - 8);
  const last = Math.min(visible.length, printing ? MOST_PRINTED : Math.ceil((tree.scrollTop + tree.clientHeight) / ROW) + 8);
  const rows = [];
  for (let at = first; at < last; at++) rows.push(visible[at] === HEADING ? headingNode(at) : rowNode(visible[at], at, withoutCounted(weight[visible[at]], visible[at], state.metric), whole));
  byId("rows").replaceChildren(...rows);
  if (visible.includes(state.path)) tree.setAttribute("aria-activedescendant", "row-" + state.path);
  else tree.removeAttribute("aria-activedescendant");
}

// Returns the row above the start and the end of MPI, which are not part of the program, with their total.
function headingNode(at) {
  const row = element("div", { class: "row heading", role: "none", title: "not part of the program: shares and totals do not contain them" });
  row.style.top = at * ROW + "px";
  const whole = quantity(wholeOf(startAndEnd), metricByName.get(state.metric).unit);
  row.append(element("span", { class: "name" }, START_AND_END), element("span", { class: "wide" }), element("span", { class: "share" }), element("span", { class: "value" }, whole));
  return row;
}

function rowNode(node, at, value, whole) {
  const region = regionOf(node);
  const leaf = !childrenOf[node].length;
  const unfolded = open.has(node) || (matches !== null && !leaf);
  const row = element("div", {
    class: "row" + (region.kind === "mpi" ? " mpi" : ""),
    role: "treeitem",
    id: "row-" + node,
    "aria-level": depthOf[node] + 1,
    "aria-selected": node === state.path,
    "data-path": node,
  });
  if (!leaf) row.setAttribute("aria-expanded", unfolded);
  row.style.top = at * ROW + "px";
  const name = element("span", { class: "name", title: region.display });
  name.style.paddingLeft = Math.min(depthOf[node], 24) * 14 + "px";
  const twist = element("span", { class: "twist", "aria-hidden": "true" }, leaf ? "" : unfolded ? "▾" : "▸");
  name.append(twist, labelNode(needle ? region.display : region.short));
  const model = modelsOf(state.metric).formula(node, state.scope);
  const formula = element("span", { class: "formula wide" });
  if (model) formula.append(formulaNode(model));
  formula.title = formula.textContent;
  const fraction = whole > 0 && Number.isFinite(value) ? value / whole : NaN;
  const fill = element("b");
  fill.style.width = Math.max(0, Math.min(1, fraction || 0)) * 100 + "%";
  const share = element("span", { class: "share" });
  if (!isStartOrEnd[node]) share.append(element("i", {}, fill), element("span", {}, percent(fraction)));
  row.append(name, formula, share, element("span", { class: "value" }, quantity(value, metricByName.get(state.metric).unit)));
  return row;
}

function labelNode(text) {
  const label = element("span", { class: "label" });
  const at = needle ? text.toLowerCase().indexOf(needle) : -1;
  if (at < 0) label.append(text);
  else label.append(text.slice(0, at), element("mark", {}, text.slice(at, at + needle.length)), text.slice(at + needle.length));
  return label;
}

function reveal(path) {
  for (const node of ancestry(path).slice(0, -1)) open.add(node);
}

function intoView() {
  const tree = byId("tree");
  const at = visible.indexOf(state.path);
  if (at < 0) return;
  if (at * ROW < tree.scrollTop) tree.scrollTop = at * ROW;
  else if ((at + 1) * ROW > tree.scrollTop + tree.clientHeight) tree.scrollTop = (at + 1) * ROW - tree.clientHeight;
  drawRows();
}

function fold(node, unfold) {
  if (unfold) open.add(node);
  else open.delete(node);
  drawTree();
}

function search(text) {
  needle = text.trim().toLowerCase();
  matches = null;
  if (needle) {
    matches = new Map();
    DATA.parent.forEach((_, node) => {
      const region = regionOf(node);
      if (!region.display.toLowerCase().includes(needle) && !region.name.toLowerCase().includes(needle)) return;
      for (const step of ancestry(node)) if (!matches.has(step)) matches.set(step, false);
      matches.set(node, true);
    });
  }
  byId("tree").scrollTop = 0;
  drawTree();
}

function moveBy(step) {
  const paths = visible.filter((node) => node >= 0);
  const next = paths[Math.max(0, Math.min(paths.length - 1, paths.indexOf(state.path) + step))];
  if (next !== undefined) choose({ path: next });
  intoView();
}

function treeKey(event) {
  const page = Math.max(1, Math.floor(byId("tree").clientHeight / ROW) - 1);
  const node = state.path;
  const keys = {
    ArrowDown: () => moveBy(1),
    ArrowUp: () => moveBy(-1),
    PageDown: () => moveBy(page),
    PageUp: () => moveBy(-page),
    Home: () => moveBy(-visible.length),
    End: () => moveBy(visible.length),
    ArrowRight: () => (open.has(node) || !childrenOf[node].length ? moveBy(1) : fold(node, true)),
    ArrowLeft: () => {
      if (open.has(node) && childrenOf[node].length) fold(node, false);
      else if (DATA.parent[node] >= 0) {
        choose({ path: DATA.parent[node] });
        intoView();
      }
    },
    Enter: () => fold(node, !open.has(node)),
    " ": () => fold(node, !open.has(node)),
  };
  if (node < 0 || !keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  keys[event.key]();
}

// Unfolds the call path with the largest values, so that the first view shows the most important call paths.
function openHeaviest() {
  const weight = mediansAt(state.metric, "inclusive", state.configuration);
  let level = roots.slice();
  for (let depth = 0; depth < 4 && level.length; depth++) {
    const next = [];
    const top = level.reduce((a, b) => ((weight[b] || 0) > (weight[a] || 0) ? b : a));
    for (const node of level)
      if (childrenOf[node].length && (node === top || (weight[node] || 0) > 0.2 * (weight[top] || 0))) {
        open.add(node);
        if (childrenOf[node].length <= 200) next.push(...childrenOf[node]);
      }
    level = next;
  }
}

function drawTreeFor(paper) {
  printing = paper;
  drawTree();
}

function startTree() {
  const tree = byId("tree");
  openHeaviest();
  tree.addEventListener("scroll", () => requestAnimationFrame(drawRows), { passive: true });
  tree.addEventListener("keydown", treeKey);
  tree.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (!row || !row.dataset.path) return;
    const node = Number(row.dataset.path);
    if (event.target.closest(".twist") && childrenOf[node].length && !matches) fold(node, !open.has(node));
    choose({ path: node });
  });
  tree.addEventListener("dblclick", (event) => {
    const row = event.target.closest(".row");
    if (row && row.dataset.path && !matches) fold(Number(row.dataset.path), !open.has(Number(row.dataset.path)));
  });
  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("expand").addEventListener("click", () => {
    childrenOf.forEach((below, node) => below.length && open.add(node));
    drawTree();
  });
  byId("collapse").addEventListener("click", () => {
    open.clear();
    drawTree();
  });
  window.addEventListener("resize", drawRows);
  window.addEventListener("beforeprint", () => drawTreeFor(true));
  window.addEventListener("afterprint", () => drawTreeFor(false));
  onChange((update) => ("path" in update && Object.keys(update).length === 1 ? drawRows() : drawTree()));
  drawTree();
}
