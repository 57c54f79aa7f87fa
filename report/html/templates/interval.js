// SPDX-License-Identifier: Apache-2.0
// Computes the 90 % interval of the value of a model.

const NORMAL_90 = 1.6449; // half the width of a 90 % interval in standard deviations
const MOST_DEVIATION = 5; // larger relative standard errors count as this one, which makes the interval open (DATA.open)

// Returns the standard error of a model at a point. values: of its factors at this point. The covariance of a model
// contains its coefficients (the constant first), their exponents, and the curvature in each parameter. Only the diagonal
// and the part to the right of the diagonal are stored.
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

// The latest result for a mixture of normal distributions: the probability below x, and the density at x. Source of the
// formula: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26 (error < 1.5e-7).
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

// Returns the quantile `level` of a mixture whose weights add up to 1. Uses Newton's method, beginning at `near`; and
// bisection if a step of Newton's method leaves the interval or the error did not halve. It ends after a step of 1e-5
// standard deviations, because the remaining error is then about the square of this step.
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

// Returns the value of a model at a point, and its 90 % interval: quantiles of a mixture of all hypotheses that fit nearly
// as well. Each hypothesis has the relative standard error of the model. If all values are above 0, the distributions are
// log-normal.
function predict(model, point) {
  if (isAbsent(model, point)) return { middle: 0, low: 0, high: 0 };
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
