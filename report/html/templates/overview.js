// SPDX-License-Identifier: Apache-2.0
// Shows the first screen: predicted time of the program at the target, its uncertainty, its limits, and what to do next.

const ADVICE = {
  waiting: "to waiting for other ranks: balance the work before the call, or overlap it with computing (nonblocking operations, receives that are posted earlier)",
  contention: "to a slowdown as ranks are added, while the work does not grow: try fewer ranks per node, fewer or larger messages, or another algorithm of the collective",
  "cache effects": "to caches that become too small when the data grow: block or fuse the loops, or make the data smaller",
};
const MOST_ADVICE = 4;
const MOST_TERMS = 3; // terms of the growth of a call path that are shown without a click
const WORTH = 0.05; // the overview lists call paths with at least this share of the program
const NARROW = 1.5; // largest ratio of the ends of an interval that `sureness` calls narrow
const WIDE = 4;

const overviewPoint = () => (isSingle ? DATA.points[0] : state.target);

// Returns the predicted total of the program at a point, and its interval.
function programPrediction(metric, point) {
  const set = modelsOf(metric);
  return set.combined(set.predictions("exclusive", point).filter((_, path) => !isStartOrEnd[path]));
}

// Returns a text with the largest heap of a rank at a point and its interval; for a single configuration the measured
// value; null if it was not measured.
function largestHeap(point) {
  if (!metricByName.has("heap_peak")) return null;
  if (isSingle) {
    const largest = mediansAt("heap_peak", "exclusive", 0).reduce((most, value) => Math.max(most, value || 0), 0);
    return largest > 0 ? quantity(largest, "B") : null;
  }
  // The value is the sum over all call paths. The interval contains the errors of both metrics (modeling/heap.py).
  const found = ["heap_held", "heap_peak"].filter((name) => metricByName.has(name)).map((name) => modelsOf(name).combined(modelsOf(name).predictions("exclusive", point))).filter((one) => one);
  if (!found.length) return null;
  const [low, high] = [Math.min(...found.map((one) => one.low)), Math.max(...found.map((one) => one.high))];
  return `${quantity(found[0].middle, "B")}${high > low ? `, 90 % interval ${intervalText(low, high, "B")}` : ""}`;
}

function overviewFacts(metric, point, findings) {
  const unit = metricByName.get(metric).unit;
  const program = programPrediction(metric, point);
  const facts = [];
  if (metric === "time" && DATA.slowest) facts.push(["slowest rank", DATA.slowest.text]);
  const sums = measuredTotals(metric);
  const longest = sums.reduce((best, value, at) => (value > (sums[best] ?? -1) ? at : best), 0);
  if (sums[longest] > 0) facts.push([isSingle ? metric : "largest measured", `${quantity(sums[longest], unit)} at ${pointText(DATA.parameters, DATA.points[longest])}`]);
  const base = metric === "time" ? baseOfScaling() : NaN;
  const efficiency = metric === "time" ? efficiencyAt(point, base) : NaN;
  if (efficiency > 0) facts.push([`${scalingKind()} scaling efficiency`, `${percent(efficiency, 0)} of p=${numberText(base)}${notOfSlowest()}`]);
  const heap = metric === "time" ? largestHeap(point) : null;
  if (heap) facts.push(["largest heap of a rank", heap]);
  const lost = findings.reduce((sum, one) => sum + one.lost, 0);
  if (program && lost >= 0.01 * program.middle) facts.push(["lost by growth beyond effort", `${quantity(lost, "s")}, ${percent(lost / wholeWith(point, findings), 0)}`]);
  return facts;
}

// Returns a text about the uncertainty of a prediction and its distance from the measurements.
function sureness(program, point) {
  const ratio = program.high / program.low;
  const beyond = beyondText(timesBeyond(point, DATA.ranges));
  const far = beyond ? `the target is ${beyond} beyond the measurements` : "the target is within the measured range";
  if (!(ratio <= DATA.open)) return `Not determined by the measurements: ${far}.`;
  const word = ratio <= NARROW ? "Well" : ratio <= WIDE ? "Roughly" : "Hardly";
  const ends = ratio < 1.005 ? "both ends of the interval are equal" : `the upper end is ${factorText(ratio)} the lower one`;
  return `${word} determined: ${ends}; ${far}.`;
}

// Returns the largest call paths at a point, largest first: [path, share, share at the largest configuration].
function heaviest(metric, point) {
  const values = programModels(metric).map(([path, model]) => [path, valueAt(model, point)]);
  const whole = values.reduce((sum, [, value]) => sum + value, 0);
  const now = mediansAt(metric, "exclusive", state.configuration);
  const measured = measuredTotals(metric)[state.configuration];
  return values.sort((a, b) => b[1] - a[1]).slice(0, 3).map(([path, value]) => [path, whole > 0 ? value / whole : 0, measured > 0 ? (now[path] || 0) / measured : NaN]);
}

function linkTo(path, metric) {
  const button = element("button", { type: "button", class: "link", title: pathName(path) }, nameApart(path));
  button.addEventListener("click", () => {
    byId("metric").value = metric;
    choose({ metric });
    openPath(path);
    byId("detail").scrollIntoView({ block: "nearest" });
  });
  return button;
}

function adviceItems(metric, point, findings, top) {
  const items = [];
  const whole = findings.length ? wholeWith(point, findings) : 0;
  const said = new Set();
  for (const one of findings.filter((own) => own.lost >= WORTH * whole).slice(0, MOST_ADVICE)) {
    said.add(one.path);
    const what = ADVICE[one.cause] || "to more time per unit of effort";
    items.push([linkTo(one.path, "time"), ` loses ${quantity(one.lost, "s")} (${percent(one.lost / whole, 0)}) at the target ${what}.`]);
  }
  for (const [path, share] of top) {
    if (items.length >= MOST_ADVICE || said.has(path) || share < 2 * WORTH) continue;
    const model = modelsOf(metric).own.get(path);
    const growth = isSingle ? [] : growsTo(model, point) ? [" at the target and grows as ", formulaNode(model, MOST_TERMS)] : [" at the target and does not grow"];
    items.push([linkTo(path, metric), ` takes ${percent(share, 0)}`, ...growth, `: ${remedyOf(path, metric, model, point)}.`]);
  }
  return items;
}

// Returns whether the terms of a model are at least 1 % of its value at a point, so that it is more than a constant.
const growsTo = (model, point) => Math.abs(evaluate(model, point) - model.constant) >= 0.01 * Math.abs(evaluate(model, point));

// Returns advice for a call path with much time that its effort explains.
function remedyOf(path, metric, model, point) {
  if (metric === "time" && metricByName.has("wait_time")) {
    const [waiting, all] = ["wait_time", "time"].map((name) => mediansAt(name, "exclusive", state.configuration)[path]);
    if (waiting > 0.5 * all) return `${percent(waiting / all, 0)} of it is waiting for other ranks: balance the work before it, or overlap it with computing`;
  }
  if (regionOf(path).kind === "mpi") return "fewer or larger messages, fewer calls, or overlap with computation help";
  return growsTo(model, point) ? "less work or an algorithm of lower order helps more than a faster machine" : "only a faster implementation helps";
}

// Returns the measurements to make before the user relies on the prediction.
function doubts(point) {
  const single = "Measure more: one configuration does not show how the program scales. Measure at least 4 values of each parameter.";
  const items = isSingle ? [[single]] : DATA.blind.map((note) => [`Measure more: ${note}.`]);
  const beyond = timesBeyond(point, DATA.ranges);
  if (isFar(beyond)) items.push([`Measure closer to the target: it is ${beyondText(beyond)} beyond what was measured, and predictions are checked up to ${DATA.far} times beyond. `, element("code", {}, `quipu suggest … --target ${DATA.parameters.map((name, at) => `${name}=${numberText(point[at])}`).join(",")}`), " lists the runs."]);
  if (DATA.oversubscribed.every(Boolean) && DATA.oversubscribed.length) items.push([DATA.loaded.every(Boolean) ? "Measure on a machine without other load: other programs used processors that the ranks of all runs needed." : "Measure on more processors: all runs had to wait for a processor, so their times contain this waiting."]);
  return items;
}

function drawOverview() {
  const point = overviewPoint();
  const metric = metricByName.has("time") && modelsOf("time").own.size ? "time" : state.metric;
  const right = point.every((value) => value > 0) && modelsOf(metric).own.size > 0 && metricByName.get(metric).over_locations !== "max";
  byId("overview-title").textContent = right && DATA.parameters.length ? `${isSingle ? "Where the time goes" : "The program"} at ${pointText(DATA.parameters, point)}` : "What the program does";
  const top = right ? heaviest(metric, point) : [];
  const findings = right && metric === "time" && DATA.slowdowns ? findingsAt(point).filter((one) => one.lost > 0) : [];
  const facts = right ? overviewFacts(metric, point, findings) : [];
  byId("overview-facts").replaceChildren(...facts.map(([label, text]) => element("div", {}, element("dt", {}, label), element("dd", {}, text))));
  const program = right && !isSingle ? programPrediction(metric, point) : null;
  byId("overview-long").hidden = !program;
  byId("overview-long").firstElementChild.textContent = metric === "time" ? "How long, and how sure?" : `How many ${metric}, and how sure?`;
  byId("overview-answer").replaceChildren(...(program ? [element("strong", {}, quantity(program.middle, metricByName.get(metric).unit)), `${metric === "time" ? "" : ` ${metric}`}${program.high > program.low ? `, 90 % interval ${intervalText(program.low, program.high, metricByName.get(metric).unit)}` : ""}. `, sureness(program, point)] : []));
  const verdict = byId("overview-verdict");
  if (!top.length) verdict.replaceChildren(right ? "nothing grows" : `${metric} has no model: the tree below shows measured values.`);
  else {
    const [path, share, now] = top[0];
    const before = Number.isFinite(now) && !isSingle ? `, ${percent(now, 0)} at the shown configuration` : "";
    verdict.replaceChildren(share > 0.5 ? "Most of the " : "The largest part of the ", metric, " is in ", linkTo(path, metric), `: ${percent(share, 0)}${isSingle ? "" : " at the target"}${before}.`, ...(top[1] && top[1][1] >= WORTH ? [" Then ", linkTo(top[1][0], metric), ` with ${percent(top[1][1], 0)}.`] : []));
  }
  const items = [...adviceItems(metric, point, findings, top), ...(right ? doubts(point) : [])];
  byId("overview-advice").replaceChildren(...items.map((parts) => element("li", {}, ...parts)));
  byId("overview-todo").hidden = !items.length;
  drawEfficiency();
}
