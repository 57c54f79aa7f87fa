// SPDX-License-Identifier: Apache-2.0
// Draws the iterations of a refinement: overhead and budget, number of regions, and coverage.

function drawRefinement() {
  const { budget, rows } = DATA.refinement;
  const line = (name, key, kind) => ({ name, kind, points: rows.filter((row) => row[key] !== null).map((row) => [row.number, row[key]]) });
  drawIterations("refinement-overhead", "Overhead", [line("measured", "overhead", "curve"), line("predicted", "predicted", "curve beyond")], true, budget);
  drawIterations("refinement-regions", "Regions", [line("in the filter", "marked", "curve"), line("that ran", "executed", "curve beyond")], false, null);
  drawIterations("refinement-coverage", "Coverage", [line("of the reference run", "coverage", "curve")], true, null);
}

function drawIterations(id, title, lines, percentages, limit) {
  const frame = chartFrame(id);
  const shown = lines.filter((one) => one.points.length);
  if (!shown.length) return emptyChart(frame, `${title.toLowerCase()} is not known`);
  const values = shown.flatMap((one) => one.points.map(([, value]) => value));
  const numbers = DATA.refinement.rows.map((row) => row.number);
  const top = Math.max(...values, limit ?? 0) * 1.08 || 1;
  const range = [Math.min(...numbers) - 0.3, Math.max(...numbers) + 0.3];
  const { svg, width, height } = frame;
  const x = axisOf(...range, false, FRAME.left, width - FRAME.right);
  const y = axisOf(Math.min(0, ...values) * 1.08, top, false, height - FRAME.bottom, FRAME.top);
  x.ticks = numbers;
  const text = (value) => (percentages ? percentTick(value) : numberText(value));
  drawAxes(svg, x, y, width, height, "iteration", text);
  const keys = [];
  if (limit !== null) {
    svg.append(shape("path", { class: "ideal", d: pathOf(x, y, [[range[0], limit], [range[1], limit]]) }));
    keys.push([shape("path", { class: "ideal", d: "M0 0L17 0" }), `budget ${text(limit)}`]);
  }
  for (const { name, kind, points } of shown) {
    const dot = kind === "curve" ? "mean" : "point";
    svg.append(shape("path", { class: kind, d: pathOf(x, y, points) }));
    for (const [number, value] of points) svg.append(shape("circle", { class: dot, cx: x.place(number), cy: y.place(value), r: 4 }, shape("title", {}, `iteration ${number}, ${name}: ${text(value)}`)));
    keys.push([shape("g", {}, shape("path", { class: kind, d: "M0 0L17 0" }), shape("circle", { class: dot, cx: 8, cy: 0, r: 4 })), name]);
  }
  placeLegend(svg, width, keys);
  svg.setAttribute("aria-label", `${title} per iteration: ${shown.map((one) => `${one.name} ${one.points.map(([number, value]) => `${text(value)} in ${number}`).join(", ")}`).join("; ")}`);
}

function startRefinement() {
  if (!DATA.refinement) return;
  drawRefinement();
  window.addEventListener("resize", drawRefinement);
}
