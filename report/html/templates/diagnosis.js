// SPDX-License-Identifier: Apache-2.0
// Section "What will hurt at scale": call paths whose time grows faster than their effort, by the time lost at the target.
// A slowdown is the time divided by the time that effort explains. Its model over a parameter x is
// r = a + b·x^power·log2(x)^log. There is one pair a, b for each line: measured points that differ only in x. The line
// nearest to the target counts.

const LEAST_LOSS = 1e-3; // findings that lose a smaller share of the time at the target are not shown
const LEAST_BEYOND = 0.01; // call paths without a finding are shown if they lose at least this share of the program
const MOST_OTHERS = 3;

function slowdownFactors(one, point) {
  const others = point.filter((_, at) => at !== one.parameter).map(Math.log);
  const distance = (line) => line.others.reduce((sum, value, at) => sum + Math.abs(Math.log(Math.max(value, 1e-300)) - others[at]), 0);
  const line = one.lines.reduce((best, other) => (distance(other) < distance(best) ? other : best));
  const growth = (x) => line.a + line.b * x ** one.power * (one.log ? Math.log2(x) ** one.log : 1);
  return { now: growth(line.high), first: Math.max(growth(line.low), 0.5 * line.least), there: growth(Math.max(point[one.parameter], line.low)), line };
}

// Returns for each call path the time that effort explains: the models of time without waiting and slowdown.
function fromEffort(point) {
  const set = modelsOf("time");
  return set.predictions("exclusive", point).map((one, path) => {
    const lower = set.own.get(path)?.lower;
    return lower ? evaluate(lower, point) : one?.middle ?? 0;
  });
}

function findingsAt(point) {
  const times = fromEffort(point);
  const set = modelsOf("time");
  const whole = set.predictions("exclusive", point);
  return DATA.slowdowns
    .map((one) => {
      const model = set.own.get(one.path);
      const { now, first, there, line } = slowdownFactors(one, point);
      const expected = times[one.path];
      const predicted = model?.lower ? whole[one.path]?.middle ?? 0 : expected * there;
      const lost = there > first && expected > 0 ? predicted * (1 - first / there) : 0;
      return { ...one, model, line, measured: now / first, slowdown: there / first, predicted, lost };
    })
    .filter((one) => one.lost > 0)
    .sort((a, b) => b.lost - a.lost || a.path - b.path || a.parameter - b.parameter);
}

// Returns the predicted time of the program, without the start and the end of MPI.
function predictedTotal(point) {
  return modelsOf("time").predictions("exclusive", point).reduce((sum, one, path) => sum + (isStartOrEnd[path] ? 0 : one?.middle ?? 0), 0);
}

// Returns the time lost by findings that the models of time, and therefore the prediction, do not contain.
const notInModels = (findings) => findings.reduce((sum, one) => sum + (one.model?.lower ? 0 : one.lost), 0);

// Returns the time to which the shares of findings refer: the prediction plus the losses that it does not contain.
const wholeWith = (point, findings) => predictedTotal(point) + notInModels(findings);

// Returns the call paths without a finding that take longer than effort explains: [path, lost seconds], largest first.
function othersAt(point, found, program) {
  const set = modelsOf("time");
  const known = new Set(found.map((one) => one.path));
  const alone = fromEffort(point);
  return set
    .predictions("exclusive", point)
    .map((one, path) => [path, (one?.middle ?? 0) - alone[path]])
    .filter(([path, seconds]) => set.own.get(path)?.lower && !isStartOrEnd[path] && !known.has(path) && seconds > 0 && seconds >= LEAST_BEYOND * program)
    .sort((a, b) => b[1] - a[1] || a[0] - b[0]);
}

// Returns elements with the work of a call path: its model of basic blocks; of an MPI operation, of bytes and calls.
function effortNode(path) {
  const names = regionOf(path).kind === "mpi" ? ["bytes_sent", "bytes_received", "visits"] : ["blocks"];
  const parts = [];
  for (const name of names) {
    const model = metricByName.has(name) ? modelsOf(name).own.get(path) : null;
    if (model && (model.terms.length || model.constant)) parts.push(element("div", {}, `${name} `, formulaNode(model)));
  }
  return parts.length ? parts : ["-"];
}

function findingRow(one, at, whole) {
  const name = DATA.parameters[one.parameter];
  const range = `${name} = ${numberText(one.line.low)} to ${numberText(one.line.high)}`;
  const evidence = [element("div", {}, `${factorText(one.measured)} slower over the measured ${range}`)];
  if (one.wait !== null) evidence.push(element("div", {}, `${percent(one.wait, 0)} of the longest time was waiting`));
  const chance = element("div", { class: "status" }, one.chance > 0 ? `chance ${exponential(one.chance, 0)}` : "chance below 1e-300");
  chance.title = "expected number of false findings in the whole program with an F-test at least as significant";
  const row = element("tr", { "data-path": one.path, class: one.path === state.path ? "chosen" : "" });
  row.append(element("td", { class: "number" }, String(at + 1)), pathCell(one.path, "time"));
  row.append(element("td", {}, element("span", { class: "tag" }, one.cause)));
  row.append(element("td", { class: "number" }, quantity(one.lost, "s")), element("td", { class: "number" }, percent(whole > 0 ? one.lost / whole : NaN)));
  const growth = formulaNode({ constant: 0, terms: [{ c: 1, ...unpackProduct([[one.parameter, one.powerText, one.log, 0]]) }] });
  row.append(element("td", { class: "number" }, factorText(one.slowdown)), element("td", {}, growth));
  row.append(element("td", { class: "evidence" }, ...evidence, chance));
  const time = element("td", {}, formulaNode(one.model.lower || one.model));
  if (one.model.prior) time.append(" ", element("span", { class: "tag prior", title: one.model.prior }, "prior"));
  if (one.model.oversubscribed) time.append(" ", oversubscribedTag());
  row.append(time, element("td", {}, ...effortNode(one.path)));
  return row;
}

function drawDiagnosis() {
  const point = state.target;
  const status = byId("scale-status");
  const table = byId("findings");
  const wrong = DATA.parameters.filter((_, at) => !(point[at] > 0));
  byId("diagnosis-title").textContent = `What will hurt at ${wrong.length ? "?" : pointText(DATA.parameters, point)}`;
  table.hidden = true;
  status.className = "status";
  if (wrong.length) {
    status.textContent = `give a number above 0 for ${wrong.join(", ")}`;
    return;
  }
  let expected = 0;
  let outside = 0;
  fromEffort(point).forEach((value, path) => {
    if (isStartOrEnd[path]) outside += value;
    else expected += value;
  });
  const predicted = predictedTotal(point);
  const all = findingsAt(point);
  const found = all.filter((one) => one.lost >= LEAST_LOSS * wholeWith(point, all));
  const others = othersAt(point, all, predicted);
  const lost = found.reduce((sum, one) => sum + one.lost, 0);
  table.hidden = !found.length;
  table.tBodies[0].replaceChildren(...found.slice(0, 25).map((one, at) => findingRow(one, at, wholeWith(point, found))));
  const parts = [`the program is predicted to take ${quantity(predicted, "s")} at the target, ${quantity(expected, "s")} from effort alone`];
  if (found.length) parts.push(`${quantity(lost, "s")} are lost by growth beyond effort`);
  else if (!others.length) parts.push("nothing was found that grows faster than effort");
  if (notInModels(found) > 0) parts.push(`${quantity(notInModels(found), "s")} of it has no model of time and is not part of the prediction`);
  if (others.length) parts.push(`${found.length ? "also " : ""}beyond effort: ${others.slice(0, MOST_OTHERS).map(([path, seconds]) => `${nameApart(path)} ${quantity(seconds, "s")}`).join(", ")}`);
  if (outside > 0) parts.push(`${START_AND_END} take ${quantity(outside, "s")}, which is not part of the program`);
  const beyond = extrapolationText(point);
  if (beyond) parts.push(beyond);
  status.className = beyond ? "status outside" : "status";
  if (found.length > 25) parts.push(`${found.length - 25} further findings are not listed`);
  status.textContent = parts.join("; ");
}

function startDiagnosis() {
  byId("diagnosis").hidden = !DATA.slowdowns;
  if (!DATA.slowdowns) return;
  byId("blind").replaceChildren(...DATA.blind.map((note) => element("p", { class: "note" }, note)));
  onChange((update) => {
    if ("path" in update) markChosen("findings");
  });
  drawDiagnosis();
}
