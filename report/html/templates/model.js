// Models: evaluation, prediction with interval, sums over subtrees, formulas as document nodes.
// A model is {constant, terms}; a term is {c, factors}; a factor is {p, i, text, j, s}:
// x^i log2^j(x) ((x-1)/x)^s of parameter number p, with i also as text such as "2/3"; or of an extent of the grid of x
// processes, [rule, dimensions, index, name] (modeling/process_grid.py).

const NORMAL_90 = 1.6449; // half the width of a 90 % interval in standard deviations

function unpackTerms(terms) {
  return terms.map(([c, factors]) => ({
    c,
    factors: factors.map(([p, text, j, s, axis]) => {
      const [above, below] = text.split("/").map(Number);
      return { p, i: below ? above / below : above, text, j, s, axis };
    }),
  }));
}

function unpackModel(raw) {
  return {
    ...raw,
    terms: unpackTerms(raw.terms),
    alternatives: (raw.alternatives || []).map(([weight, constant, terms]) => ({ weight, constant, terms: unpackTerms(terms) })),
  };
}

// Extents as near to each other as possible, largest first, as MPI_Dims_create chooses them.
function balancedExtents(processes, dimensions) {
  if (dimensions === 1) return [processes];
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const divisors = [];
  for (let d = 1; d * d <= processes; d++) if (processes % d === 0) divisors.push(d, processes / d);
  let best = [processes, ...Array(dimensions - 1).fill(1)];
  for (const first of divisors.sort((a, b) => a - b)) {
    const rest = balancedExtents(processes / first, dimensions - 1);
    const better = sum(rest) + first - sum(best) || first - best[0];
    if (rest[0] <= first && better < 0) best = [first, ...rest];
  }
  return best;
}

// Each prime factor, largest first, to the smallest extent.
function extentsOfFactors(processes, dimensions) {
  const factors = [];
  for (let d = 2; d * d <= processes; d++) while (processes % d === 0) { factors.push(d); processes /= d; }
  if (processes > 1) factors.push(processes);
  const extents = Array(dimensions).fill(1);
  for (const factor of factors.sort((a, b) => b - a)) extents[extents.indexOf(Math.min(...extents))] *= factor;
  return extents.sort((a, b) => b - a);
}

function extentOf([rule, dimensions, index], processes) {
  if (!Number.isInteger(processes) || processes < 1 || processes > 2 ** 40) return processes ** (1 / dimensions);
  const extents = (rule.startsWith("balanced") ? balancedExtents : extentsOfFactors)(processes, dimensions);
  return extents[rule.endsWith("smallest first") ? dimensions - 1 - index : index];
}

function evaluate(model, point) {
  let sum = model.constant;
  for (const term of model.terms) {
    let product = term.c;
    for (const f of term.factors) {
      const x = f.axis ? extentOf(f.axis, point[f.p]) : point[f.p];
      if (f.i) product *= x ** f.i;
      if (f.j) product *= Math.log2(x) ** f.j;
      if (f.s) product *= ((x - 1) / x) ** f.s;
    }
    sum += product;
  }
  return sum;
}

// The standard error of a model at a point, from the covariance of its coefficients (the constant first).
function standardError(model, point) {
  const matrix = model.covariance;
  if (!matrix || !matrix.length) return 0;
  const basis = [1, ...model.terms.map((term) => evaluate({ constant: 0, terms: [{ c: 1, factors: term.factors }] }, point))];
  let variance = 0;
  matrix.forEach((row, i) => row.forEach((value, j) => (variance += basis[i] * value * basis[j])));
  return Math.sqrt(Math.max(0, variance));
}

// Normal distribution function; Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26 (error < 1.5e-7).
function normalBelow(z) {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-x * x);
  return z < 0 ? tail / 2 : 1 - tail / 2;
}

function mixtureQuantile(values, deviations, weights, level) {
  const total = weights.reduce((a, b) => a + b, 0);
  const below = (x) => values.reduce((sum, value, at) => sum + weights[at] * (deviations[at] > 0 ? normalBelow((x - value) / deviations[at]) : Number(value <= x)), 0) / total;
  let low = Math.min(...values.map((value, at) => value - 8 * deviations[at]));
  let high = Math.max(...values.map((value, at) => value + 8 * deviations[at]));
  if (below(low) >= level) return low;
  for (let k = 0; k < 60 && high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high)); k++) {
    const middle = (low + high) / 2;
    if (below(middle) >= level) high = middle;
    else low = middle;
  }
  return high;
}

// Median and 90 % interval over the near-best hypotheses, each a normal distribution around its own prediction with
// the relative standard error of the model.
function predict(model, point) {
  const value = evaluate(model, point);
  const error = standardError(model, point);
  if (!model.alternatives.length) {
    const low = value - NORMAL_90 * error;
    return { middle: value, low: value >= 0 ? Math.max(0, low) : low, high: value + NORMAL_90 * error };
  }
  const relative = value ? error / Math.abs(value) : 0;
  const values = [value, ...model.alternatives.map((other) => evaluate(other, point))];
  const deviations = values.map((one) => Math.max(Math.abs(one) * relative, one === value ? error : 0));
  const weights = [1, ...model.alternatives.map((other) => other.weight)];
  for (const other of model.alternatives) weights[0] -= other.weight;
  const [low, middle, high] = [0.05, 0.5, 0.95].map((level) => mixtureQuantile(values, deviations, weights, level));
  return { middle, low: Math.min(...values) >= 0 ? Math.max(0, low) : low, high };
}

// The prediction of a sum of independent parts: deviations add as squares.
function addPredictions(a, b) {
  const middle = a.middle + b.middle;
  return {
    middle,
    low: Math.max(0, middle - Math.hypot(a.middle - a.low, b.middle - b.low)),
    high: middle + Math.hypot(a.high - a.middle, b.high - b.middle),
  };
}

// Models of one metric by call path, exclusive and inclusive.
class ModelSet {
  constructor(metric) {
    this.metric = metric;
    this.own = new Map();
    this.reasons = new Map();
    for (const raw of DATA.models) {
      if (raw.metric !== metric.name) continue;
      if (raw.terms) this.own.set(raw.path, unpackModel(raw));
      else this.reasons.set(raw.path, raw.reason);
    }
    this.sums = new Map();
  }

  // Inclusive models add up like terms; for metrics that combine by maximum there is no single formula.
  formula(path, scope) {
    if (scope === "exclusive") return this.own.get(path) || null;
    if (this.metric.over_locations === "max") return childrenOf[path].length ? null : this.own.get(path) || null;
    if (!this.sums.has(path)) this.sums.set(path, this.collect(path));
    return this.sums.get(path);
  }

  collect(path) {
    const like = new Map();
    let constant = 0;
    let any = false;
    for (const node of subtree(path)) {
      const model = this.own.get(node);
      if (!model) continue;
      any = true;
      constant += model.constant;
      for (const term of model.terms) {
        const key = term.factors.map((f) => [f.p, f.text, f.j, f.s, f.axis].join(":")).sort().join("|");
        const known = like.get(key);
        if (known) known.c += term.c;
        else like.set(key, { c: term.c, factors: term.factors });
      }
    }
    return any ? { constant, terms: [...like.values()].filter((term) => term.c !== 0), alternatives: [] } : null;
  }

  // A value below 0 means that the growth of something else was mistaken for a decrease: it counts as 0.
  predictOwn(path, point) {
    const model = this.own.get(path);
    if (!model) return null;
    const one = predict(model, point);
    if (!Number.isFinite(one.middle)) return null;
    return { middle: Math.max(0, one.middle), low: Math.max(0, one.low), high: Math.max(0, one.high) };
  }

  predict(path, scope, point) {
    if (scope === "exclusive") return this.predictOwn(path, point);
    let result = null;
    for (const node of subtree(path)) result = this.combined(result, this.predictOwn(node, point));
    return result;
  }

  // The prediction of two parts, each null if there is none.
  combined(a, b) {
    if (!a || !b) return a || b;
    if (this.metric.over_locations === "max") return b.middle > a.middle ? b : a;
    return addPredictions(a, b);
  }
}

// SMAPE of a sum of models: mean of 2 |model - measured| / (|model| + |measured|), in percent.
function errorOfSum(metric, path, model) {
  const errors = [];
  DATA.points.forEach((point, configuration) => {
    const measured = mean(repetitionsOf(metric, "inclusive", path, configuration));
    const value = evaluate(model, point);
    const size = Math.abs(value) + Math.abs(measured);
    if (Number.isFinite(size)) errors.push(size ? (2 * Math.abs(value - measured)) / size : 0);
  });
  return errors.length ? 100 * mean(errors) : null;
}

function outsideRange(point) {
  return DATA.parameters.filter((name, at) => {
    const column = DATA.points.map((row) => row[at]);
    return point[at] < Math.min(...column) || point[at] > Math.max(...column);
  });
}

// The digits of modeling/pmnf/model/text.py, and the exponent of ten if there is one.
function coefficient(value) {
  const [mantissa, exponent] = (Number.isInteger(value) && value < 1e6 ? decimal(value, 0) : general(value, 4)).split("e");
  return exponent ? [mantissa + "·10", String(Number(exponent))] : [mantissa, null];
}

// A formula as an element: superscripts are elements, names are text.
function formulaNode(model) {
  const out = element("span", { class: "math" });
  const order = (term) => term.factors.reduce((sum, f) => sum + f.i + 0.01 * f.j, 0);
  const terms = [...model.terms].sort((a, b) => order(b) - order(a));
  let first = true;
  const add = (value, factors) => {
    const sign = value < 0 ? (first ? "−" : " − ") : first ? "" : " + ";
    out.append(sign);
    first = false;
    const size = Math.abs(value);
    const [text, exponent] = coefficient(size);
    const one = size === 1;
    if (!one || !factors.length) {
      out.append(text);
      if (exponent !== null) out.append(element("sup", {}, exponent.replace("-", "−")));
    }
    const above = factors.filter((f) => f.i >= 0);
    const below = factors.filter((f) => f.i < 0);
    const tops = [...above.flatMap(factorParts), ...below.flatMap((f) => factorParts({ ...f, i: 0 }))];
    if (!tops.length && factors.length && one) out.append("1");
    join(out, tops, !one || !factors.length);
    const bottoms = below.flatMap((f) => factorParts({ ...f, i: -f.i, text: f.text.replace("-", ""), j: 0, s: 0 }));
    if (bottoms.length) out.append(bottoms.length > 1 ? "/(" : "/");
    join(out, bottoms, false);
    if (bottoms.length > 1) out.append(")");
  };
  for (const term of terms) add(term.c, term.factors);
  if (model.constant !== 0 || !terms.length) add(model.constant, []);
  return out;
}

function join(out, parts, started) {
  for (const part of parts) {
    if (started) out.append("·");
    out.append(...part);
    started = true;
  }
}

// The parts of one factor, each a list of text and elements.
function factorParts(f) {
  const name = f.axis ? f.axis[3] : DATA.parameters[f.p];
  const parts = [];
  if (f.i) parts.push([name, ...(f.i === 1 ? [] : [element("sup", {}, f.text)])]);
  if (f.j) parts.push(["log₂", ...(f.j === 1 ? [] : [element("sup", {}, String(f.j))]), `(${name})`]);
  for (let k = 0; k < f.s; k++) parts.push([`(${name}−1)/${name}`]);
  return parts;
}
