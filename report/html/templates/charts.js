// SPDX-License-Identifier: Apache-2.0
// Common parts of the charts of the whole program: points over one parameter, layers, legends.

const MOST_EVALUATIONS = 400000;

// Cache of `programOf`, by metric.
const programCache = new Map();

// Returns the exclusive models of the program: all (`models`), the sum of the models without negative terms (`sum`), and
// the others (`rest`). For parameters of at least 1, a model without negative terms is never below 0, so the sum is exact.
function programOf(metric) {
  if (!programCache.has(metric)) {
    const set = modelsOf(metric);
    const models = [...set.own].filter(([path]) => !isStartOrEnd[path]);
    const rises = ([, model]) => model.constant >= 0 && model.terms.every((term) => term.c >= 0);
    const sum = set.sumOver(models.filter(rises).map(([path]) => path));
    programCache.set(metric, { models, sum, rest: models.filter((one) => !rises(one)) });
  }
  return programCache.get(metric);
}
const programModels = (metric) => programOf(metric).models;
const valueAt = (model, point) => Math.max(0, evaluate(model, point));

function programAt(metric, point) {
  const { models, sum, rest } = programOf(metric);
  const summed = sum !== null && point.every((value) => value >= 1);
  return (summed ? rest : models).reduce((total, [, model]) => total + valueAt(model, point), summed ? evaluate(sum, point) : 0);
}

const totalsCache = new Map();

// Returns the measured total of the program at each configuration: median over repetitions, NaN if not measured.
function measuredTotals(metric) {
  if (!totalsCache.has(metric)) {
    const paths = preorder.filter((path) => !isStartOrEnd[path]);
    totalsCache.set(metric, DATA.points.map((_, configuration) => median(repetitionsOver(metric, paths, configuration, false))));
  }
  return totalsCache.get(metric);
}

// Returns the index of the configuration from which most others differ in only one parameter. This is the centre if each
// parameter was varied alone. Of several such configurations, returns the shown one, otherwise the last one.
function middleConfiguration() {
  const around = DATA.points.map((point) => DATA.points.filter((other) => other.filter((value, at) => value !== point[at]).length === 1).length);
  const most = Math.max(...around);
  return around[state.configuration] === most ? state.configuration : around.lastIndexOf(most);
}

// Returns the target, or the chosen configuration if the target is incomplete.
const targetPoint = () => (state.target.every((value) => value > 0) ? state.target : state.fixed);

// Returns the values of a point as text, without the parameter `axis`.
const othersText = (point, axis) => DATA.parameters.flatMap((name, at) => (at === axis ? [] : [`${name}=${numberText(point[at])}`])).join(", ");

// Returns points over the parameter `axis`, from its lowest measured value to `reach`. The other parameters are `fixed`.
function placesOver(axis, fixed, reach, parts) {
  const column = DATA.points.map((point) => point[axis]);
  const low = Math.min(...column);
  const high = Math.max(...column, reach > 0 ? reach : 0);
  const steps = Math.max(8, Math.min(48, Math.floor(MOST_EVALUATIONS / Math.max(1, parts))));
  const log = low > 0 && high / low >= 8;
  return Array.from({ length: steps + 1 }, (_, k) => {
    const point = fixed.slice();
    point[axis] = log ? low * (high / low) ** (k / steps) : low + ((high - low) * k) / steps;
    return point;
  });
}

function chartFrame(id) {
  const svg = byId(id);
  const width = Math.max(300, Math.min(WIDEST, svg.parentNode.clientWidth || 600));
  const height = width < 460 ? 250 : 300;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  return { svg, width, height };
}

function emptyChart({ svg, width, height }, text) {
  svg.append(shape("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, text));
  svg.setAttribute("aria-label", text);
}

const percentTick = (value) => percent(value, Math.abs(100 * value - Math.round(100 * value)) < 1e-6 ? 0 : 1);

function axesFor({ svg, width, height }, [low, high], [bottom, top], { logX, logY, label, side, unit, xUnit, percentages }) {
  const x = axisOf(low, high, logX, FRAME.left, width - FRAME.right);
  const y = axisOf(bottom, top, logY, height - FRAME.bottom, FRAME.top);
  drawAxes(svg, x, y, width, height, label, (value) => (percentages ? percentTick(value) : quantity(value, unit)), xUnit ? (value) => quantity(value, xUnit) : numberText);
  const middle = (FRAME.top + height - FRAME.bottom) / 2;
  if (side) svg.append(shape("text", { x: 11, y: middle, "text-anchor": "middle", transform: `rotate(-90 11 ${middle})` }, side));
  return { x, y };
}

const pathOf = (x, y, list) => list.map(([a, b], at) => `${at ? "L" : "M"}${x.place(a).toFixed(1)} ${y.place(b).toFixed(1)}`).join("");
const isSpread = (low, high) => low > 0 && high / low >= 8;
