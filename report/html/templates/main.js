// Start: fill the controls, connect them, draw.

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

startControls();
if (DATA.parent.length && DATA.metrics.length) {
  startPlotControls();
  startRanking();
  startTree();
  onChange(drawDetail);
  onChange((update) => "path" in update && Object.keys(update).length === 1 ? markChosen("ranked") : drawRanking());
  window.addEventListener("resize", drawPlot);
  drawDetail();
  drawRanking();
  startDiagnosis();
  drawNoise();
} else byId("tree-status").textContent = "nothing was measured";
document.documentElement.dataset.ready = "true";
