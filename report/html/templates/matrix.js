// SPDX-License-Identifier: Apache-2.0
// Draws the communication matrix as a heat map. Many ranks are combined to blocks.

const matrixByConfiguration = new Map(DATA.communication.map((one) => [one.configuration, one]));
let matrix = null; // the drawn matrix: values of the cells, order of the cells by value, positions
let matrixCursor = [0, 0]; // receiver, sender

const ranksOf = ({ ranks, step }, block) => {
  const [first, last] = [block * step, Math.min(ranks, (block + 1) * step) - 1];
  return first === last ? `rank ${first}` : `ranks ${first} to ${last}`;
};

function drawMatrix() {
  const kind = Number(byId("matrix-values").value);
  const frame = chartFrame("matrix");
  const found = matrixByConfiguration.get(state.configuration);
  byId("matrix-status").textContent = "";
  matrix = null;
  if (!found) return emptyChart(frame, "no messages from rank to rank at this configuration");
  const blocks = Math.ceil(found.ranks / found.step);
  const unit = kind === 2 ? "B" : "1";
  const side = Math.min(frame.width - FRAME.left - COLOUR_BAR - FRAME.right, 480);
  const height = side + FRAME.top + FRAME.bottom;
  frame.svg.setAttribute("viewBox", `0 0 ${frame.width} ${height}`);
  const size = side / blocks;
  const values = new Map(found.cells.map((cell) => [cell[0] * blocks + cell[1], cell[kind]]));
  const limits = colourLimits([0, ...values.values()]);
  const end = FRAME.top + side;
  frame.svg.append(shape("rect", { class: "paper", x: FRAME.left, y: FRAME.top, width: side, height: side }));
  for (const cell of found.cells) {
    const place = { x: (FRAME.left + cell[1] * size).toFixed(2), y: (FRAME.top + cell[0] * size).toFixed(2), width: (size + 0.2).toFixed(2), height: (size + 0.2).toFixed(2) };
    frame.svg.append(shape("rect", { class: colourOf(limits, cell[kind]), ...place }));
  }
  for (const block of new Set([0, blocks >> 2, blocks >> 1, (3 * blocks) >> 2, blocks - 1])) {
    const middle = (block + 0.5) * size;
    frame.svg.append(shape("text", { x: FRAME.left + middle, y: end + 16, "text-anchor": "middle" }, String(block * found.step)));
    frame.svg.append(shape("text", { x: FRAME.left - 7, y: FRAME.top + middle + 4, "text-anchor": "end" }, String(block * found.step)));
  }
  frame.svg.append(shape("text", { x: FRAME.left + side / 2, y: end + 34, "text-anchor": "middle" }, "receiver"), shape("text", { x: FRAME.left - 7, y: FRAME.top - 8, "text-anchor": "end" }, "sender"));
  const tall = Math.min(side / STEPS, 30);
  limits.forEach((limit, at) => {
    const bottom = FRAME.top + STEPS * tall - at * tall;
    if (at < STEPS) frame.svg.append(shape("rect", { class: `s${at}`, x: FRAME.left + side + 18, y: bottom - tall, width: 16, height: tall }));
    frame.svg.append(shape("text", { x: FRAME.left + side + 40, y: bottom + 4 }, quantity(limit, unit)));
  });
  frame.svg.append(shape("rect", { id: "matrix-cursor", class: "cursor", width: size, height: size }));
  const order = found.cells.slice().sort((a, b) => b[kind] - a[kind]);
  matrix = { found, values, blocks, size, unit, order, width: frame.width };
  moveMatrixCursor(matrixCursor);
  const total = found.cells.reduce((sum, cell) => sum + cell[kind], 0);
  frame.svg.setAttribute("aria-label", `${found.ranks} ranks send ${quantity(total, unit)}${kind === 2 ? "" : " messages"} to each other; most: ${order.slice(0, 3).map((cell) => `${ranksOf(found, cell[0])} to ${ranksOf(found, cell[1])} ${quantity(cell[kind], unit)}`).join("; ")}`);
}

function moveMatrixCursor(place) {
  if (!matrix) return;
  const { found, values, blocks, size, unit } = matrix;
  const [to, from] = (matrixCursor = place.map((value) => Math.max(0, Math.min(blocks - 1, value))));
  const node = byId("matrix-cursor");
  node.setAttribute("x", FRAME.left + to * size);
  node.setAttribute("y", FRAME.top + from * size);
  const value = values.get(from * blocks + to) ?? 0;
  const lost = found.unknown ? `; ${quantity(found.unknown, "B")} go to or come from ranks that are not in the map` : "";
  byId("matrix-status").textContent = `${ranksOf(found, from)} to ${ranksOf(found, to)}: ${quantity(value, unit)}${unit === "B" ? "" : " messages"}${lost}`;
}

// Handles keys: arrow keys move the cursor, Enter goes to the cell with the next smaller value.
function matrixKey(event) {
  if (!matrix || event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (moves[event.key]) moveMatrixCursor(matrixCursor.map((place, at) => place + moves[event.key][at]));
  else if (event.key === "Enter") {
    const here = matrix.order.findIndex((cell) => cell[1] === matrixCursor[0] && cell[0] === matrixCursor[1]);
    const next = matrix.order[(here + 1) % matrix.order.length];
    moveMatrixCursor([next[1], next[0]]);
  } else return;
  event.preventDefault();
}

function startMatrix() {
  byId("matrix-card").hidden = !DATA.communication.length;
  if (byId("matrix-card").hidden) return;
  byId("matrix-values").addEventListener("change", drawMatrix);
  byId("matrix-frame").addEventListener("keydown", matrixKey);
  byId("matrix").addEventListener("click", (event) => {
    if (!matrix) return;
    const box = byId("matrix").getBoundingClientRect();
    const scale = matrix.width / box.width;
    moveMatrixCursor([(event.clientX - box.left) * scale - FRAME.left, (event.clientY - box.top) * scale - FRAME.top].map((place) => Math.floor(place / matrix.size)));
  });
}
