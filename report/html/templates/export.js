// SPDX-License-Identifier: Apache-2.0
// Saves every plot as SVG and PNG, and every table as CSV.

const DRAWN = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "text-anchor"];

function save(name, kind, content) {
  const link = element("a", { href: window.URL.createObjectURL(new window.Blob([content], { type: kind })), download: name });
  link.click();
  setTimeout(() => window.URL.revokeObjectURL(link.href), 10000);
}

const fileName = (title, suffix) => `${document.title.split(":")[0]}-${title}`.replace(/[^\w.=-]+/g, "-").slice(0, 100) + suffix;

// Returns a copy of a plot with the styles in it, because other programs do not have the style sheet of the page.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, at) => {
    const style = getComputedStyle(from[at]);
    for (const name of DRAWN) node.setAttribute(name, style.getPropertyValue(name));
    node.removeAttribute("class");
  });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.prepend(shape("rect", { width, height, fill: getComputedStyle(svg.closest(".card")).backgroundColor }));
  return { text: new window.XMLSerializer().serializeToString(copy), width: Number(width), height: Number(height) };
}

function savePicture(svg, title) {
  const { text, width, height } = standalone(svg);
  const image = new window.Image();
  image.addEventListener("load", () => {
    const canvas = element("canvas", { width: 2 * width, height: 2 * height });
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    context.drawImage(image, 0, 0, width, height);
    canvas.toBlob((blob) => save(fileName(title, ".png"), "image/png", blob), "image/png");
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

// Returns a table as CSV (RFC 4180). A cell that a spreadsheet would execute as a formula is marked as text.
function csvOf(table) {
  const cell = (node) => {
    const text = node.textContent.trim().replace(/\s+/g, " ");
    const safe = /^[=@]|^[+-](?![\d.])/.test(text) ? `'${text}` : text;
    return `"${safe.replaceAll('"', '""')}"`;
  };
  return [...table.rows].map((row) => [...row.cells].map(cell).join(",")).join("\r\n") + "\r\n";
}

function exportBar(title, entries) {
  const buttons = entries.map(([text, work]) => {
    const button = element("button", { type: "button", "aria-label": `Save ${title} as ${text}` }, text);
    button.addEventListener("click", work);
    return button;
  });
  return element("div", { class: "export", role: "group", "aria-label": `Save ${title}` }, ...buttons);
}

function startExport() {
  const titleOf = (node) => node.dataset.title || node.closest(".card")?.querySelector("h2")?.textContent || "table";
  for (const svg of document.querySelectorAll("svg[data-title]"))
    svg.after(exportBar(titleOf(svg), [["SVG", () => save(fileName(titleOf(svg), ".svg"), "image/svg+xml", standalone(svg).text)], ["PNG", () => savePicture(svg, titleOf(svg))]]));
  for (const table of document.querySelectorAll(".card .scroll > table"))
    table.parentNode.after(exportBar(table.dataset.title || table.caption?.textContent.split(":")[0] || titleOf(table), [["CSV", () => save(fileName(titleOf(table), ".csv"), "text/csv;charset=utf-8", csvOf(table))]]));
}
