// SPDX-License-Identifier: Apache-2.0
// Evaluates models, predicts call paths, and adds models of subtrees.
//
// A model is {constant, terms}, a term {c, factors} with the coefficient c. A factor is {p, i, text, j, s}. Its value is
// x^i · log2(x)^j · ((x - 1)/x)^s, where x is the parameter number p. `text` is i as text, such as "2/3" or "log2(7)". If
// s = -1, the value is x^i · log2(x)^j for x > 1 and 0 otherwise. Other kinds of factors:
// - {axis}, [rule, dimensions, index, name]: x is an extent of the grid of the processes (modeling/process_grid.py).
// - {call}, {kind, numbers, argument, order}: f^i, where f is a function of a sum of terms (Function in
//   modeling/pmnf/model/term.py).
// - {steps}, {base, unit, down, itself}: base^(i·k) · k^j, where k is a number of steps (modeling/pmnf/model/steps.py).
// - {blocks}, {size, power, product}: (⌈m/size⌉·size/m)^power, where m is a product of factors (Blocks in
//   modeling/pmnf/model/term.py).

// Each factor that occurs has a number. All models of the page share the value of a factor at a point.
const allFactors = [];
const factorNumbers = new Map();

// Returns the value of an exponent that is written as "2", "2/3", or, for a recursion that halves the size, "log2(7)-1".
function numberOf(text) {
  const calls = text.match(/^log2\((\d+)\)([+-]\d+)?$/);
  if (calls) return Math.log2(Number(calls[1])) + Number(calls[2] ?? 0);
  const [above, below] = text.split("/").map(Number);
  return below ? above / below : above;
}

function factorOf([p, text, j, s, variable]) {
  const key = JSON.stringify([p, text, j, s, variable]);
  if (!factorNumbers.has(key)) {
    const isBlocks = variable && "size" in variable;
    const blocks = isBlocks ? { ...variable, product: variable.product.map(factorOf) } : null;
    const isCall = variable && "kind" in variable;
    const argument = isCall ? variable.argument.map(([c, factors]) => ({ c, factors: factors.map(factorOf) })) : null;
    const kind = Array.isArray(variable) ? { axis: variable } : isBlocks ? { blocks }
      : isCall ? { call: { ...variable, argument } } : { steps: variable };
    factorNumbers.set(key, allFactors.length);
    allFactors.push({ p, i: numberOf(text), text, j, s, ...kind, number: allFactors.length });
  }
  return allFactors[factorNumbers.get(key)];
}

// Each product of factors that occurs has a number. Terms with the same number are added.
const allProducts = [];
const productNumbers = new Map();

function unpackProduct(list) {
  const factors = list.map(factorOf);
  const key = factors.length === 1 ? String(factors[0].number) : factors.map((f) => f.number).sort((a, b) => a - b).join(" ");
  if (!productNumbers.has(key)) {
    productNumbers.set(key, allProducts.length);
    allProducts.push(factors);
  }
  return { factors, product: productNumbers.get(key) };
}

// The products of the data of the report, by their index in DATA.products; null before the first use.
let products = null;

function unpackTerms(terms) {
  products ??= DATA.products.map(unpackProduct);
  return terms.map(([c, number]) => ({ c, ...products[number] }));
}

// A model from the data of the report. Its other hypotheses are converted only when an interval is computed.
class Unpacked {
  constructor(raw) {
    this.raw = raw;
    this.constant = raw.constant;
    this.terms = unpackTerms(raw.terms);
    this.lower = raw.lower && { ...raw.lower, terms: unpackTerms(raw.lower.terms), absent: raw.absent };
    this.summed = raw.summed && { ...raw.summed, terms: unpackTerms(raw.summed.terms) };
    this.covariance = raw.covariance;
    this.others = null;
  }

  get alternatives() {
    this.others ??= (this.raw.alternatives || []).map(([weight, constant, terms]) => ({ weight, constant, terms: unpackTerms(terms) }));
    return this.others;
  }
}
for (const name of ["absent", "basis", "prior", "notes", "smape", "ranges", "oversubscribed"])
  Object.defineProperty(Unpacked.prototype, name, { get() { return this.raw[name]; } });

const unpackModel = (raw) => new Unpacked(raw);

// Returns the extents of a process grid that are as similar as possible, largest first, as MPI_Dims_create does.
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

// Returns the extents of a process grid that result if each prime factor, the largest first, multiplies the smallest
// extent.
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
  const [base, others = ""] = rule.split(", but ");
  const grids = others.split(" and ").map((grid) => grid.split("x").map(Number));
  const other = grids.find((grid) => grid.length === dimensions && grid.reduce((a, b) => a * b) === processes);
  if (other) return other[index];
  const extents = (base.startsWith("balanced") ? balancedExtents : extentsOfFactors)(processes, dimensions);
  return extents[base.endsWith("smallest first") ? dimensions - 1 - index : index];
}

function stepsTo({ base, unit, down, itself }, x) {
  if (itself) return x;
  const ratio = Math.log2(x / unit) / Math.log2(base);
  return Math.max(down ? Math.floor(ratio) : Math.ceil(ratio), 0);
}

let lastPoint = null;
let lastValues = new Float64Array(0);

// Returns the values of all factors at a point. The values at the last point are cached.
function factorsAt(point) {
  const same = lastPoint !== null && lastValues.length === allFactors.length && point.every((x, at) => x === lastPoint[at]);
  if (same) return lastValues;
  lastPoint = point.slice();
  lastValues = new Float64Array(allFactors.length);
  allFactors.forEach((f, at) => { // the factors in blocks and functions precede the factor that contains them
    lastValues[at] = factorAt(f, point);
  });
  return lastValues;
}

// Returns the value of a factor with blocks. If the product is nearly an integer, it is rounded to this integer, because
// the difference is a rounding error (as in Blocks of modeling/pmnf/model/term.py).
function inBlocks({ size, power, product }) {
  const whole = product.reduce((value, f) => value * lastValues[f.number], 1);
  const near = Math.round(whole);
  const own = Math.abs(whole - near) <= 1e-12 * near ? near : whole;
  return ((Math.ceil(own / size) * size) / own) ** power;
}

const WHOLE = 1e-9; // largest rounding error of a number that is an integer without rounding errors

// Returns the value of a function of a sum, as Function in modeling/pmnf/model/term.py.
function callOf({ kind, numbers, argument }) {
  const x = sumOf({ constant: 0, terms: argument }, lastValues);
  if (kind === "ceil") return Math.ceil(x - WHOLE);
  if (kind === "floor") return Math.floor(x + WHOLE);
  if (kind === "above") return x > numbers[0] ? 1 : 0;
  if (kind === "below") return x < numbers[0] ? 1 : 0;
  if (kind === "positive") return Math.max(x, 0);
  if (kind === "power") return Math.max(x, 0) ** numbers[0];
  if (kind === "log2") return Math.log2(Math.max(x, 0));
  const [least, shift, power] = numbers;
  let sum = 0;
  for (let level = x; level >= least * (1 - WHOLE); level /= 2) sum += Math.max(level + shift, 0) ** power;
  return sum;
}

function factorAt(f, point) {
  if (f.blocks) return inBlocks(f.blocks);
  if (f.call) return callOf(f.call) ** f.i;
  if (f.steps) {
    const number = stepsTo(f.steps, point[f.p]);
    return f.steps.base ** (number * f.i) * number ** f.j;
  }
  const x = f.axis ? extentOf(f.axis, point[f.p]) : point[f.p];
  let value = f.i ? x ** f.i : 1;
  if (f.j) value *= Math.log2(x) ** f.j;
  if (f.s > 0) value *= ((x - 1) / x) ** f.s;
  if (f.s < 0) value *= x > 1 ? 1 : 0;
  return value;
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

// Returns whether a model is 0 at a point because the code is not executed there. absent: list of [parameter, value].
const isAbsent = ({ absent }, point) => Boolean(absent) && absent.some(([at, value]) => point[at] === value);

// Returns the value of a model at a point. parts: models whose sum is the model, because some of them are absent at some
// values of a parameter.
function evaluate(model, point) {
  if (isAbsent(model, point)) return 0;
  if (model.parts) return model.parts.reduce((sum, part) => sum + evaluate(part, point), 0);
  return sumOf(model, factorsAt(point));
}

const MOST_POINTS = 24; // points whose predictions are cached
const KEPT_FROM = 250; // predictions of subtrees with at least this number of call paths are cached
const SLICE = 500; // predictions in one slice, after which the page reacts to input

// The exclusive and inclusive models of one metric, by call path.
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

  // Returns the model of a call path; null if it has none. The inclusive model is the sum of the models of the subtree. A
  // metric that is combined by the maximum has no inclusive model.
  formula(path, scope) {
    if (scope === "exclusive") return this.own.get(path) || null;
    if (this.metric.over_locations === "max") return childrenOf[path].length ? null : this.own.get(path) || null;
    if (!this.sums.has(path)) this.sums.set(path, this.sumOver(subtree(path)));
    return this.sums.get(path);
  }

  // Returns the sum of the models of call paths; null if none has a model. Ignores that models are 0 at x = 1 if 1 is the
  // smallest measured x.
  sumOver(paths) {
    const apart = new Map();
    const nodes = Array.from(paths);
    for (const node of nodes) {
      const absent = (this.own.get(node)?.absent || []).filter(([at, value]) => value !== 1 || DATA.ranges[at][0] !== 1);
      const key = absent.length ? JSON.stringify(absent) : "[]";
      if (!apart.has(key)) apart.set(key, { absent, nodes: [] });
      apart.get(key).nodes.push(node);
    }
    const whole = this.collected(nodes);
    if (whole === null || (apart.size < 2 && apart.has("[]"))) return whole;
    const parts = [...apart.values()].map(({ absent, nodes: own }) => ({ ...this.collected(own), absent }));
    return { ...whole, parts: parts.filter((part) => part.terms) };
  }

  collected(paths) {
    const sums = new Float64Array(allProducts.length);
    const order = new Set();
    let constant = 0;
    let any = false;
    for (const node of paths) {
      if (!this.own.has(node)) continue;
      const model = this.own.get(node).summed || this.own.get(node);
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

  // Returns the exclusive prediction of a call path. A value below 0 is an error of the fit and becomes 0.
  predictOwn(path, point) {
    const model = this.own.get(path);
    if (!model) return null;
    const one = predict(model, point);
    if (!Number.isFinite(one.middle)) return null;
    return { middle: Math.max(0, one.middle), low: Math.max(0, one.low), high: Math.max(0, one.high) };
  }

  // Returns the cached predictions at a point, by call path. If the cache is full, removes the oldest point.
  knownAt(point) {
    const key = point.join(" ");
    let known = this.known.get(key);
    if (known) this.known.delete(key);
    else known = { exclusive: new Array(DATA.parent.length), inclusive: null };
    this.known.set(key, known);
    if (this.known.size > MOST_POINTS) this.known.delete(this.known.keys().next().value);
    return known;
  }

  // Returns the predictions of all call paths at a point. The prediction of a call path without a model is null.
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

  // Returns whether `predict` is fast at these points, because the cache contains nearly all needed predictions.
  isKnown(path, scope, points) {
    if (scope === "exclusive" || subtreeSize(path) < KEPT_FROM) return true;
    let missing = 0;
    for (const point of points) {
      const own = this.knownAt(point).exclusive;
      for (const node of subtree(path)) if (own[node] === undefined && this.own.has(node)) missing++;
    }
    return missing <= SLICE;
  }

  // Computes the predictions of a subtree at a point, and yields after each slice.
  * predicting(path, point) {
    const own = this.knownAt(point).exclusive;
    let made = 0;
    for (const node of subtree(path)) {
      if (own[node] !== undefined) continue;
      own[node] = this.predictOwn(node, point);
      if (++made % SLICE === 0) yield;
    }
  }

  // Returns the predicted value of a call path without its interval; if inclusive, with all call paths below it.
  middleOf(path, scope, point) {
    let sum = NaN;
    for (const node of scope === "exclusive" ? [path] : subtree(path)) {
      const model = this.own.get(node);
      const value = model ? Math.max(0, evaluate(model, point)) : NaN;
      if (Number.isFinite(value)) sum = Number.isNaN(sum) ? value : this.metric.over_locations === "max" ? Math.max(sum, value) : sum + value;
    }
    return sum;
  }

  // Returns the prediction of a sum of independent parts, whose variances add up. A part may be null (no model). Returns
  // null if all parts are null.
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

  // Returns whether a prediction uses runs with more ranks than processors.
  oversubscribed(path, scope) {
    if (scope === "exclusive") return Boolean(this.own.get(path)?.oversubscribed);
    this.marked ??= (() => {
      const marked = DATA.parent.map((_, node) => Boolean(this.own.get(node)?.oversubscribed));
      for (let node = marked.length - 1; node >= 0; node--) if (marked[node] && callerOf[node] >= 0) marked[callerOf[node]] = true;
      return marked;
    })();
    return this.marked[path];
  }

  // Returns by which factor a point is beyond the measured range of a model, by parameter; if inclusive, of all models
  // below the call path.
  beyond(path, scope, point) {
    const ranges = new Set();
    for (const node of scope === "exclusive" ? [path] : subtree(path)) {
      const model = this.own.get(node);
      if (model && !isAbsent(model, point)) ranges.add(model.ranges || DATA.ranges);
    }
    const most = byName();
    for (const own of ranges) for (const [name, times] of Object.entries(timesBeyond(point, own))) most[name] = Math.max(times, most[name] || 1);
    return most;
  }
}

// Returns the SMAPE of a sum of models in percent: mean of 2 |model - measured| / (|model| + |measured|).
function errorOfSum(metric, path, model) {
  const errors = [];
  const dedicated = metricByName.get(metric).kind === "cost" && DATA.oversubscribed.includes(false);
  DATA.points.forEach((point, configuration) => {
    if (dedicated && DATA.oversubscribed[configuration]) return;
    const measured = median(repetitionsOf(metric, "inclusive", path, configuration));
    const value = evaluate(model, point);
    const size = Math.abs(value) + Math.abs(measured);
    if (Number.isFinite(size)) errors.push(size ? (2 * Math.abs(value - measured)) / size : 0);
  });
  return errors.length ? 100 * mean(errors) : null;
}

// Returns by which factor a point is beyond measured ranges, by parameter; empty if inside (modeling/extrapolation.py).
function timesBeyond(point, ranges) {
  const beyond = byName();
  DATA.parameters.forEach((name, at) => {
    const [low, high] = ranges[at];
    if (point[at] > high) beyond[name] = high > 0 ? point[at] / high : Infinity;
    else if (point[at] < low) beyond[name] = low / point[at];
  });
  return beyond;
}

const isFar = (beyond) => Object.values(beyond).some((times) => times > DATA.far);
