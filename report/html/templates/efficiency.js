// SPDX-License-Identifier: Apache-2.0
// Shows the efficiencies of each configuration on the first screen, and the call paths with the largest losses.

const LOSSES = { load_balance: "by imbalance", communication: "by communication", threads: "by idle threads", computation: "by more or slower work than on fewer processors" };
const GOOD = 0.8; // as in report/efficiency_views.py
const POOR = 0.6;

const gradeOf = (value) => (value === null ? "" : value >= GOOD ? "good" : value >= POOR ? "fair" : "poor");

function drawEfficiency() {
  const found = DATA.efficiency;
  byId("overview-efficient").hidden = !found;
  if (!found || byId("factors").rows.length) return;
  const heads = found.headings.map((text) => element("th", { scope: "col" }, text));
  byId("factors").append(element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "factor"), ...heads)));
  const rows = found.rows.map(({ title, depth, values }) =>
    element("tr", { class: depth < 2 ? "main" : "" }, element("th", { scope: "row", class: `depth-${depth}` }, title), ...values.map((value) => element("td", { class: gradeOf(value) }, percent(value)))),
  );
  byId("factors").append(element("tbody", {}, ...rows));
  const waits = found.waits.map(({ path, seconds, causes }) => {
    const parts = causes.flatMap((one) => [`, ${percent(one.share, 0)} because of rank ${one.rank} in `, linkTo(one.path, "time"), one.not_running ? " (not running)" : one.more_work ? " (more work than on the others)" : one.more_work === false ? " (slower than on the others)" : ""]);
    return element("li", {}, linkTo(path, "time"), ` waits ${quantity(seconds, "s")}`, ...parts, ".");
  });
  const { at, share, slowest, paths } = found.lost || { paths: [] };
  const items = paths.map((one) => element("li", {}, linkTo(one.path, "time"), ` loses ${percent(one.share)}, ${LOSSES[one.most]}.`));
  byId("losses").replaceChildren(...items, ...waits);
  byId("losses-title").textContent = items.length ? `${percent(share)} of the time is lost at ${at}${slowest === null ? "" : `, where rank ${slowest} has most time outside of MPI`}:` : "";
}
