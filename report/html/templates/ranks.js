// SPDX-License-Identifier: Apache-2.0
// Draws the time of each rank in the longest call paths as a heat map. Many ranks are combined to blocks.

const ranksByConfiguration = new Map(DATA.ranks.map((one) => [one.configuration, one]));
const RANK_NAMES = 250; // width of the names of call paths in pixels
const RANK_SHARES = 62; // width of the column with their imbalance in pixels
const RANK_ROW = 20;
let rankMap = null; // the data of the drawn heat map
let rankCursor = [0, 0]; // block of ranks, row

function drawRanks() {
  const frame = chartFrame("ranks");
  const found = ranksByConfiguration.get(state.configuration);
  const relative = byId("ranks-values").value === "relative";
  byId("ranks-status").textContent = "";
  rankMap = null;
  if (!found || !found.paths.length) return emptyChart(frame, "no times of several ranks at this configuration");
  const names = Math.min(RANK_NAMES, frame.width * 0.3);
  const side = frame.width - names - RANK_SHARES - COLOUR_BAR;
  const blocks = found.cells[0].length;
  const [rows, size] = [found.paths.length, side / blocks];
  const end = FRAME.top + rows * RANK_ROW;
  frame.svg.setAttribute("viewBox", `0 0 ${frame.width} ${Math.max(end, FRAME.top + STEPS * RANK_ROW) + FRAME.bottom}`);
  const means = found.cells.map((row) => row.reduce((a, b) => a + b, 0) / blocks);
  const values = found.cells.map((row, at) => row.map((value) => (relative ? value / (means[at] || 1) : value)));
  const limits = colourLimits([0, ...values.flat()]);
  const text = (value) => (relative ? timesMean(value) : quantity(value, "s"));
  const labels = labelsApart(found.paths);
  values.forEach((row, at) => {
    const top = FRAME.top + at * RANK_ROW;
    row.forEach((value, block) => frame.svg.append(shape("rect", { class: colourOf(limits, value), x: (names + block * size).toFixed(2), y: top, width: (size + 0.2).toFixed(2), height: RANK_ROW + 0.2 })));
    const fits = Math.max(4, Math.floor(names / 7) - 1);
    frame.svg.append(shape("text", { x: names - 7, y: top + 14, "text-anchor": "end" }, labels[at].length > fits ? `${labels[at].slice(0, fits - 1)}…` : labels[at]));
    frame.svg.append(shape("text", { x: names + side + RANK_SHARES - 8, y: top + 14, "text-anchor": "end" }, percent(found.imbalance[at])));
  });
  for (const block of new Set([0, blocks >> 2, blocks >> 1, (3 * blocks) >> 2, blocks - 1]))
    frame.svg.append(shape("text", { x: names + (block + 0.5) * size, y: end + 16, "text-anchor": "middle" }, String(block * found.step)));
  frame.svg.append(shape("text", { x: names + side / 2, y: end + 34, "text-anchor": "middle" }, "rank"), shape("text", { x: names + side + RANK_SHARES - 8, y: FRAME.top - 8, "text-anchor": "end" }, "imbalance"));
  limits.forEach((limit, at) => {
    const bottom = FRAME.top + (STEPS - at) * RANK_ROW;
    if (at < STEPS) frame.svg.append(shape("rect", { class: `s${at}`, x: names + side + RANK_SHARES + 8, y: bottom - RANK_ROW, width: 16, height: RANK_ROW }));
    frame.svg.append(shape("text", { x: names + side + RANK_SHARES + 30, y: bottom + 4 }, text(limit)));
  });
  frame.svg.append(shape("rect", { id: "ranks-cursor", class: "cursor", width: size, height: RANK_ROW }));
  rankMap = { found, values, text, blocks, rows, size, names, width: frame.width };
  moveRankCursor(rankCursor);
  const most = found.imbalance.indexOf(Math.max(...found.imbalance));
  frame.svg.setAttribute("aria-label", `time of ${found.ranks} ranks in ${rows} call paths; most uneven: ${regionOf(found.paths[most]).short}, ${percent(found.imbalance[most])}`);
}

const timesMean = (value) => `${Number(value.toPrecision(3))} × mean`;

function moveRankCursor(place) {
  if (!rankMap) return;
  const { found, values, text, blocks, rows, size, names } = rankMap;
  const [block, row] = (rankCursor = [Math.max(0, Math.min(blocks - 1, place[0])), Math.max(0, Math.min(rows - 1, place[1]))]);
  const mark = byId("ranks-cursor");
  mark.setAttribute("x", names + block * size);
  mark.setAttribute("y", FRAME.top + row * RANK_ROW);
  byId("ranks-status").textContent = `${pathName(found.paths[row])}, ${ranksOf(found, block)}: ${text(values[row][block])}; imbalance ${percent(found.imbalance[row])}`;
}

// Handles keys: arrow keys move the cursor, Enter chooses the call path.
function ranksKey(event) {
  if (!rankMap || event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (moves[event.key]) moveRankCursor(rankCursor.map((place, at) => place + moves[event.key][at]));
  else if (event.key === "Enter") openPath(rankMap.found.paths[rankCursor[1]]);
  else return;
  event.preventDefault();
}

function startRanks() {
  byId("ranks-card").hidden = !DATA.ranks.length;
  if (byId("ranks-card").hidden) return;
  byId("ranks-values").addEventListener("change", drawRanks);
  byId("ranks-frame").addEventListener("keydown", ranksKey);
  byId("ranks").addEventListener("click", (event) => {
    if (!rankMap) return;
    const box = byId("ranks").getBoundingClientRect();
    const scale = rankMap.width / box.width;
    moveRankCursor([((event.clientX - box.left) * scale - rankMap.names) / rankMap.size, ((event.clientY - box.top) * scale - FRAME.top) / RANK_ROW].map(Math.floor));
  });
}
