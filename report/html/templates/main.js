// SPDX-License-Identifier: Apache-2.0
// Starts the page: fills the controls, connects them, and draws all sections.

function startControls() {
  byId("metric").replaceChildren(...DATA.metrics.map((metric) => {
    const node = option(metric.name, metric.unit === "1" ? metric.name : `${metric.name} [${metric.unit}]`, metric.name === state.metric);
    node.title = metric.description;
    return node;
  }));
  byId("metric").addEventListener("change", (event) => choose({ metric: event.target.value }));
  byId("scope").addEventListener("change", (event) => choose({ scope: event.target.value }));
  byId("sort").addEventListener("change", (event) => choose({ sort: event.target.value }));
  byId("configuration").replaceChildren(...DATA.points.map((point, at) => option(at, pointText(DATA.parameters, point) + (DATA.oversubscribed[at] ? " (oversubscribed)" : ""), at === state.configuration)));
  byId("configuration").addEventListener("change", (event) => {
    const configuration = Number(event.target.value);
    state.fixed = DATA.points[configuration].slice();
    drawFixed();
    choose({ configuration });
  });
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    byId("search").focus();
  });
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.target.value = "";
      search("");
    } else if (event.key === "ArrowDown") byId("tree").focus();
  });
}

// Names of the sections that need not be drawn again if only the target changes, or only the axis of the plots.
const SAME = { target: ["accuracy", "matrix-card", "ranks-card"], axis: ["flame", "communication", "matrix-card", "ranks-card", "ranking", "accuracy", "overview"], fixed: ["flame", "communication", "matrix-card", "ranks-card", "ranking", "accuracy"] };

// The sections of the whole program, which are drawn when they come into view.
const SECTIONS = [
  ["overview", drawOverview],
  ["surface-card", drawSurface],
  ["flame", drawFlame],
  ["stack-card", () => byId("stack-card").hidden || drawStack()],
  ["scaling", () => byId("scaling").hidden || drawScaling()],
  ["communication", drawCommunication],
  ["matrix-card", () => byId("matrix-card").hidden || drawMatrix()],
  ["ranks-card", () => byId("ranks-card").hidden || drawRanks()],
  ["ranking", drawRanking],
  ["accuracy", drawAccuracy],
];
const inView = new Set();
const stale = new Set();

function drawStale() {
  for (const [name, draw] of SECTIONS)
    if (stale.has(name) && inView.has(name)) {
      stale.delete(name);
      draw();
    }
}

// Draws the visible sections one after the other. The page reacts to input in between.
function drawInTurn() {
  const waiting = SECTIONS.filter(([name]) => stale.has(name) && inView.has(name));
  document.querySelector("main").setAttribute("aria-busy", waiting.length > 1);
  if (!waiting.length) return;
  const [name, draw] = waiting[0];
  stale.delete(name);
  draw();
  if (waiting.length > 1) setTimeout(drawInTurn);
}

// Draws the sections of the whole program. If only the chosen call path has changed, only moves the marks of this path.
function drawProgram(update) {
  if ("path" in update && Object.keys(update).length === 1) {
    markFrame();
    markChosen("ranked");
    stale.add("accuracy").add("surface-card");
  } else {
    const same = SAME[Object.keys(update)[0]] ?? [];
    for (const [name] of SECTIONS) if (!same.includes(name)) stale.add(name);
  }
  drawInTurn();
  drawRankingLater();
}

// The ranking is also drawn while it is out of view, because the search and screen readers use it. This is done after a
// pause.
const PAUSE = 300; // ms
let pausing = 0;
function drawRankingLater() {
  const mine = ++pausing;
  setTimeout(() => {
    if (mine !== pausing || !stale.delete("ranking")) return;
    drawRanking();
  }, PAUSE);
}

function watchSections() {
  const observer = new window.IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) inView.add(entry.target.id);
      else inView.delete(entry.target.id);
    }
    drawInTurn();
  }, { rootMargin: "200px" });
  for (const [name] of SECTIONS) {
    stale.add(name);
    observer.observe(byId(name));
  }
  const drawAll = () => {
    for (const [name] of SECTIONS) inView.add(name);
    finishIntervals();
    drawStale();
  };
  window.addEventListener("beforeprint", drawAll);
  window.matchMedia("print").addEventListener("change", () => { // paper and screen have different widths
    for (const [name] of SECTIONS) stale.add(name);
    drawPlot();
    drawStale();
  });
  drawRankingLater();
  onChange(drawProgram);
  window.addEventListener("resize", () => drawProgram({ width: true }));
}

startControls();
if (DATA.parent.length && DATA.metrics.length) {
  startPlotControls();
  startRanking();
  startTree();
  onChange(drawDetail);
  window.addEventListener("resize", drawPlot);
  drawDetail();
  startDiagnosis();
  drawNoise();
  startFlame();
  startStack();
  startScaling();
  startSurface();
  startMatrix();
  startRanks();
  startRefinement();
  watchSections();
  startExport();
} else byId("tree-status").textContent = "nothing was measured";
document.documentElement.dataset.ready = "true";
