// SPDX-License-Identifier: Apache-2.0
// Formats numbers as text with the same digits as report/text.py. A test compares both.

// Returns the text of a number, where an exact half is rounded to the even digit as in Python. JavaScript rounds exact
// halves away from zero. text: the number with this number of decimals. exact: the number with sixty more decimals, which
// show whether it is an exact half.
function evenHalf(text, exact, decimals) {
  const end = exact.indexOf(".") + (decimals ? decimals + 1 : 0);
  const kept = exact.slice(0, end);
  return /^\.?50*$/.test(exact.slice(end)) && "02468".includes(kept.at(-1)) ? kept : text;
}

const signOf = (value) => (value < 0 || Object.is(value, -0) ? "-" : "");

function decimal(value, decimals) {
  const size = Math.abs(value);
  if (size === Infinity) return signOf(value) + "inf";
  // Twice an exact half, in units of the last digit, is an integer. The product of doubles is then exact.
  const text = size.toFixed(decimals);
  return signOf(value) + (Number.isInteger(size * 2 * 10 ** decimals) ? evenHalf(text, size.toFixed(decimals + 60), decimals) : text);
}

function exponential(value, decimals) {
  const size = Math.abs(value);
  const [mantissa, power] = size.toExponential(decimals).split("e");
  const [exact, below] = size.toExponential(decimals + 60).split("e");
  const even = evenHalf(mantissa, exact, decimals);
  const exponent = even === mantissa ? power : below;
  return `${signOf(value)}${even}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

// Returns a number with this many significant digits, without zeros at the end.
function general(value, digits) {
  if (value === 0) return signOf(value) + "0";
  const [mantissa, power] = exponential(value, digits - 1).split("e");
  const short = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  return power >= -4 && power < digits ? short(decimal(value, digits - 1 - power)) : `${short(mantissa)}e${power}`;
}

function three(value) {
  const size = Math.abs(value);
  if (size < 1e-3) return value ? exponential(value, 1) : "0";
  return decimal(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

function quantity(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  const size = Math.abs(value);
  if (size === Infinity) return decimal(value, 0);
  if (unit === "s") {
    if (value === 0) return "0 s";
    if (size >= 99999.5) return exponential(value, 3) + " s";
    const times = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
    const [factor, name] = times.find(([least]) => size >= least * 0.9995) || times[3];
    return `${three(value / factor)} ${name}`;
  }
  const suffix = unit === "1" ? "" : unit;
  const spaced = suffix ? " " + suffix : "";
  if (size < 99999.5 && (Number.isInteger(value) || size >= 999.5)) return decimal(value, 0) + spaced;
  if (size < 999.5) return three(value) + spaced;
  if (size >= 1e18) return exponential(value, 2) + spaced;
  const prefixes = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [factor, prefix] = prefixes.find(([least]) => size >= least * 0.9995);
  return `${three(value / factor)} ${prefix}${suffix}`;
}

const percent = (fraction, decimals = 1) => (fraction === null || Number.isNaN(fraction) ? "-" : decimal(100 * fraction, decimals) + "%");
const factorText = (value) => (value >= 999.5 && value < 1e6 ? decimal(value, 0) : general(value, 3)) + "×";
const beyondText = (beyond) => Object.entries(beyond).map(([name, times]) => `${name} ${factorText(times)}`).join(", ");
const numberText = (value) => (Number.isInteger(value) && Math.abs(value) < 1e15 ? String(value) : general(value, 6));
const pointText = (names, values) => names.map((name, at) => `${name}=${numberText(values[at])}`).join(", ") || "no parameters";
