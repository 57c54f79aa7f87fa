// Models: evaluation, prediction with interval, sums over subtrees, formulas as document nodes.
// A model is {constant, terms}; a term is {c, factors}; a factor is {p, i, text, j, s}:
// x^i log2^j(x) ((x-1)/x)^s of parameter number p, with i also as text such as "2/3"; or of an extent of the grid of x
// processes, [rule, dimensions, index, name] (modeling/process_grid.py).

const NORMAL_90 = 1.6449; // half the width of a 90 % interval in standard deviations
const MOST_DEVIATION = 5; // larger relative errors are as good as unlimited

// Every factor that occurs has a number, so that all models of a page share its values at a point.
const allFactors = [];
const factorNumbers = new Map();

function factorOf([p, text, j, s, axis]) {
  const key = [p, text, j, s, axis].join(":");
  if (!factorNumbers.has(key)) {
    const [above, below] = text.split("/").map(Number);
    factorNumbers.set(key, allFactors.length);
    allFactors.push({ p, i: below ? above / below : above, text, j, s, axis, number: allFactors.length });
  }
  return allFactors[factorNumbers.get(key)];
}

// Every product of factors has a number, too, by which like terms are added up.
const allProducts = [];
const productNumbers = new Map();

function unpackTerms(terms) {
  return terms.map(([c, list]) => {
    const factors = list.map(factorOf);
    const key = factors.length === 1 ? String(factors[0].number) : factors.map((f) => f.number).sort((a, b) => a - b).join(" ");
    if (!productNumbers.has(key)) {
      productNumbers.set(key, allProducts.length);
      allProducts.push(factors);
    }
    return { c, factors, product: productNumbers.get(key) };
  });
}

// The other hypotheses are unpacked when an interval is asked for.
class Unpacked {
  constructor(raw) {
    this.raw = raw;
    this.constant = raw.constant;
    this.terms = unpackTerms(raw.terms);
    this.lower = raw.lower && { ...raw.lower, terms: unpackTerms(raw.lower.terms) };
    this.covariance = raw.covariance;
    this.others = null;
  }

  get alternatives() {
    this.others ??= (this.raw.alternatives || []).map(([weight, constant, terms]) => ({ weight, constant, terms: unpackTerms(terms) }));
    return this.others;
  }
}
for (const name of ["basis", "prior", "notes", "smape", "ranges", "oversubscribed"])
  Object.defineProperty(Unpacked.prototype, name, { get() { return this.raw[name]; } });

const unpackModel = (raw) => new Unpacked(raw);

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

let lastPoint = null;
let lastValues = new Float64Array(0);

// The values of all factors at a point; those of the last point are kept.
function factorsAt(point) {
  const same = lastPoint !== null && lastValues.length === allFactors.length && point.every((x, at) => x === lastPoint[at]);
  if (same) return lastValues;
  lastPoint = point.slice();
  lastValues = Float64Array.from(allFactors, (f) => {
    const x = f.axis ? extentOf(f.axis, point[f.p]) : point[f.p];
    let value = f.i ? x ** f.i : 1;
    if (f.j) value *= Math.log2(x) ** f.j;
    if (f.s) value *= ((x - 1) / x) ** f.s;
    return value;
  });
  return lastValues;
}

function productOf(term, values) {
  let product = 1;
  for (const f of term.factors) product *= values[f.number];
  return product;
}

function sumOf(model, values) {
  let sum = model.constant;
  for (const term of model.terms) sum += term.c * productOf(term, values);
  return sum;
}

const evaluate = (model, point) => sumOf(model, factorsAt(point));

// The standard error of a model at a point where factors have these values, from the covariance of its coefficients (the
// constant first), of their exponents, and of the curvature in each parameter; of that, the part right of the diagonal.
function standardError(model, values, point) {
  const matrix = model.covariance;
  if (!matrix || !matrix.length) return 0;
  const basis = [1, ...model.terms.map((term) => productOf(term, values))];
  const parts = basis.length;
  if (matrix.length > parts) {
    const logs = point.map((x) => (x > 0 ? Math.log(x) : 0));
    const value = sumOf(model, values);
    for (const log of logs) for (let k = 0; k < parts; k++) basis.push(basis[k] * log);
    for (const log of logs) basis.push(value * log * log);
  }
  let variance = 0;
  for (let i = 0; i < basis.length; i++) {
    const row = matrix[i];
    let sum = (row[0] * basis[i]) / 2;
    for (let k = 1; k < row.length; k++) sum += row[k] * basis[i + k];
    variance += 2 * basis[i] * sum;
  }
  return Math.sqrt(Math.max(0, variance));
}

// A mixture of normal distributions: the probability below x, and its density there. Abramowitz and Stegun, Handbook of
// Mathematical Functions, 7.1.26 (error < 1.5e-7).
const mixture = { below: 0, density: 0 };
function mixtureAt(x, values, deviations, weights) {
  let below = 0;
  let density = 0;
  for (let at = 0; at < values.length; at++) {
    const deviation = deviations[at];
    if (!(deviation > 0)) {
      if (values[at] <= x) below += weights[at];
      continue;
    }
    const z = (x - values[at]) / deviation;
    if (z > 8) below += weights[at];
    if (z > 8 || z < -8) continue;
    const size = Math.abs(z) / Math.SQRT2;
    const t = 1 / (1 + 0.3275911 * size);
    const bell = Math.exp(-size * size);
    const tail = (t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * bell) / 2;
    below += weights[at] * (z < 0 ? tail : 1 - tail);
    density += (weights[at] * bell) / (deviation * 2.5066282746310002);
  }
  mixture.below = below;
  mixture.density = density;
}

// A quantile of a mixture whose weights add up to 1: Newton's method from `near`, and bisection wherever that does not
// halve the interval that holds it or the error. A step of 1e-5 leaves an error of its square.
function mixtureQuantile(values, deviations, weights, level, near) {
  let low = Infinity;
  let high = -Infinity;
  for (let at = 0; at < values.length; at++) {
    low = Math.min(low, values[at] - 8 * deviations[at]);
    high = Math.max(high, values[at] + 8 * deviations[at]);
  }
  mixtureAt(low, values, deviations, weights);
  if (mixture.below >= level) return low;
  const spread = high - low;
  let x = near > low && near < high ? near : (low + high) / 2;
  let error = 1;
  for (let k = 0; k < 100 && high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high), spread); k++) {
    mixtureAt(x, values, deviations, weights);
    const off = mixture.below - level;
    if (off >= 0) high = x;
    else low = x;
    const next = x - off / mixture.density;
    const usable = next > low && next < high && Math.abs(off) <= error / 2;
    if (usable && Math.abs(next - x) <= 1e-5 * Math.min(...deviations, spread)) return next;
    error = Math.abs(off);
    x = usable ? next : (low + high) / 2;
  }
  return high;
}

// The value of a model, and the 90 % interval over the near-best hypotheses, each with the relative standard error of the
// model, which is multiplicative where all values are above 0.
function predict(model, point) {
  const others = model.alternatives;
  const at = factorsAt(point);
  const middle = sumOf(model, at);
  const error = standardError(model, at, point);
  if (!error && !others.length) return { middle, low: middle, high: middle };
  const values = [middle];
  const weights = [1];
  let least = middle;
  for (const other of others) {
    const one = sumOf(other, at);
    values.push(one);
    weights.push(other.weight);
    weights[0] -= other.weight;
    least = Math.min(least, one);
  }
  const relative = middle ? Math.min(error / Math.abs(middle), MOST_DEVIATION) : 0;
  const multiplicative = relative > 0 && least > 0;
  const centres = multiplicative ? values.map(Math.log) : values;
  const deviations = values.map((one) => (multiplicative ? relative : Math.max(Math.abs(one) * relative, one === middle ? error : 0)));
  const end = (level, side) => {
    const near = centres[0] + side * NORMAL_90 * deviations[0];
    const found = values.length > 1 ? mixtureQuantile(centres, deviations, weights, level, near) : near;
    if (multiplicative) return Math.exp(found);
    return least >= 0 ? Math.max(0, found) : found;
  };
  return { middle, low: Math.min(middle, end(0.05, -1)), high: Math.max(middle, end(0.95, 1)) };
}

const MOST_POINTS = 24; // whose predictions are kept
const KEPT_FROM = 250; // call paths in a subtree whose predictions are kept
const SLICE = 500; // predictions that are made before the page answers again

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
    this.known = new Map();
  }

  // Inclusive models add up like terms; for metrics that combine by maximum there is no single formula.
  formula(path, scope) {
    if (scope === "exclusive") return this.own.get(path) || null;
    if (this.metric.over_locations === "max") return childrenOf[path].length ? null : this.own.get(path) || null;
    if (!this.sums.has(path)) this.sums.set(path, this.sumOver(subtree(path)));
    return this.sums.get(path);
  }

  // The models of call paths as one, null where there is none.
  sumOver(paths) {
    const sums = new Float64Array(allProducts.length);
    const order = new Set();
    let constant = 0;
    let any = false;
    for (const node of paths) {
      const model = this.own.get(node);
      if (!model) continue;
      any = true;
      constant += model.constant;
      for (const term of model.terms) {
        if (sums[term.product] === 0) order.add(term.product);
        sums[term.product] += term.c;
      }
    }
    const terms = [...order].filter((product) => sums[product] !== 0).map((product) => ({ c: sums[product], factors: allProducts[product] }));
    return any ? { constant, terms, alternatives: [] } : null;
  }

  // A value below 0 means that the growth of something else was mistaken for a decrease: it counts as 0.
  predictOwn(path, point) {
    const model = this.own.get(path);
    if (!model) return null;
    const one = predict(model, point);
    if (!Number.isFinite(one.middle)) return null;
    return { middle: Math.max(0, one.middle), low: Math.max(0, one.low), high: Math.max(0, one.high) };
  }

  // What is known at a point: predictions by call path, as far as they were asked for; the oldest point is forgotten.
  knownAt(point) {
    const key = point.join(" ");
    let known = this.known.get(key);
    if (known) this.known.delete(key);
    else known = { exclusive: new Array(DATA.parent.length), inclusive: null };
    this.known.set(key, known);
    if (this.known.size > MOST_POINTS) this.known.delete(this.known.keys().next().value);
    return known;
  }

  // The predictions of all call paths at a point, null where there is none.
  predictions(scope, point) {
    const known = this.knownAt(point);
    const own = known.exclusive;
    for (let path = 0; path < own.length; path++) if (own[path] === undefined) own[path] = this.predictOwn(path, point);
    if (scope === "inclusive" && !known.inclusive) {
      const sums = own.slice();
      for (let node = sums.length - 1; node >= 0; node--)
        if (callerOf[node] >= 0) sums[callerOf[node]] = this.combined([sums[callerOf[node]], sums[node]]);
      known.inclusive = sums;
    }
    return known[scope];
  }

  predict(path, scope, point) {
    if (scope === "exclusive") return this.predictOwn(path, point);
    if (subtreeSize(path) < KEPT_FROM) return this.combined(Array.from(subtree(path), (node) => this.predictOwn(node, point)));
    const work = this.predicting(path, point);
    while (!work.next().done);
    const own = this.knownAt(point).exclusive;
    return this.combined(Array.from(subtree(path), (node) => own[node]));
  }

  // Whether all that `predict` needs for the inclusive prediction at a point is known, or few enough to make at once.
  isKnown(path, scope, points) {
    if (scope === "exclusive" || subtreeSize(path) < KEPT_FROM) return true;
    let missing = 0;
    for (const point of points) {
      const own = this.knownAt(point).exclusive;
      for (const node of subtree(path)) if (own[node] === undefined && this.own.has(node)) missing++;
    }
    return missing <= SLICE;
  }

  // Makes the predictions of a subtree at a point; stops after every slice of them.
  * predicting(path, point) {
    const own = this.knownAt(point).exclusive;
    let made = 0;
    for (const node of subtree(path)) {
      if (own[node] !== undefined) continue;
      own[node] = this.predictOwn(node, point);
      if (++made % SLICE === 0) yield;
    }
  }

  // The value alone, of a call path and all below it.
  middleOf(path, scope, point) {
    let sum = NaN;
    for (const node of scope === "exclusive" ? [path] : subtree(path)) {
      const model = this.own.get(node);
      const value = model ? Math.max(0, evaluate(model, point)) : NaN;
      if (Number.isFinite(value)) sum = Number.isNaN(sum) ? value : this.metric.over_locations === "max" ? Math.max(sum, value) : sum + value;
    }
    return sum;
  }

  // The prediction of independent parts, null where there is none: deviations add as squares. Null without any.
  combined(list) {
    const parts = list.filter((one) => one !== null);
    if (parts.length < 2) return parts.length ? parts[0] : null;
    if (this.metric.over_locations === "max") return parts.reduce((a, b) => (b.middle > a.middle ? b : a));
    let [middle, below, above] = [0, 0, 0];
    for (const one of parts) {
      middle += one.middle;
      below += (one.middle - one.low) ** 2;
      above += (one.high - one.middle) ** 2;
    }
    return { middle, low: Math.max(0, middle - Math.sqrt(below)), high: middle + Math.sqrt(above) };
  }

  // Whether a prediction rests on runs with more ranks than processors.
  oversubscribed(path, scope) {
    if (scope === "exclusive") return Boolean(this.own.get(path)?.oversubscribed);
    this.marked ??= (() => {
      const marked = DATA.parent.map((_, node) => Boolean(this.own.get(node)?.oversubscribed));
      for (let node = marked.length - 1; node >= 0; node--) if (marked[node] && callerOf[node] >= 0) marked[callerOf[node]] = true;
      return marked;
    })();
    return this.marked[path];
  }

  // How many times a point is beyond what the model of a call path was made from, or those of all below it, by parameter.
  beyond(path, scope, point) {
    const ranges = new Set();
    for (const node of scope === "exclusive" ? [path] : subtree(path)) if (this.own.has(node)) ranges.add(this.own.get(node).ranges || DATA.ranges);
    const most = {};
    for (const own of ranges) for (const [name, times] of Object.entries(timesBeyond(point, own))) most[name] = Math.max(times, most[name] || 1);
    return most;
  }
}

// SMAPE of a sum of models: mean of 2 |model - measured| / (|model| + |measured|), in percent.
function errorOfSum(metric, path, model) {
  const errors = [];
  const dedicated = metricByName.get(metric).kind === "cost" && DATA.oversubscribed.includes(false);
  DATA.points.forEach((point, configuration) => {
    if (dedicated && DATA.oversubscribed[configuration]) return;
    const measured = mean(repetitionsOf(metric, "inclusive", path, configuration));
    const value = evaluate(model, point);
    const size = Math.abs(value) + Math.abs(measured);
    if (Number.isFinite(size)) errors.push(size ? (2 * Math.abs(value - measured)) / size : 0);
  });
  return errors.length ? 100 * mean(errors) : null;
}

// How many times a point lies beyond measured ranges, by parameter; empty within (modeling/extrapolation.py).
function timesBeyond(point, ranges) {
  const beyond = {};
  DATA.parameters.forEach((name, at) => {
    const [low, high] = ranges[at];
    if (point[at] > high) beyond[name] = high > 0 ? point[at] / high : Infinity;
    else if (point[at] < low) beyond[name] = low / point[at];
  });
  return beyond;
}

const isFar = (beyond) => Object.values(beyond).some((times) => times > DATA.far);

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
