"use strict";
// What all parts of the page share: the data, numbers as text, elements, the tooltip, the examples of a cluster.
// Texts from the data are only ever set as text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent); // page.py, render
const k = data.sizes.length;
const rowsTotal = sum(data.sizes);
const energyTotal = sum(data.energies);
const means = data.energies.map((e, j) => (e === null || !data.sizes[j] ? null : e / data.sizes[j]));
const offsets = runningSums(data.counts); // of the examples of each cluster
const PAGE = 50; // rows of the table shown at a time
const state = { chosen: -1, found: [...data.sizes.keys()], filtered: false, sort: "cluster", rising: true, page: 0 };

// ---- small things -------------------------------------------------------------------------------------------------

function sum(values) {
  return values.reduce((total, value) => total + (value ?? 0), 0);
}

function runningSums(counts) {
  const out = [0];
  for (const count of counts) out.push(out[out.length - 1] + count);
  return out;
}

function byId(id) {
  return document.getElementById(id);
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

const grouped = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const whole = new Intl.NumberFormat("en");

function show(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return whole.format(value);
  const size = Math.abs(value);
  const plain = size === 0 || (size >= 1e-3 && size < 1e7);
  return plain ? grouped.format(value) : value.toExponential(3).replace("e+", "e");
}

function percent(part, total) {
  return total > 0 && part !== null ? `${grouped.format(Number(((100 * part) / total).toPrecision(3)))} %` : "–";
}

/** An element with properties and children; strings become text. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const SVG = document.querySelector("svg").namespaceURI;

function draw(parent, tag, attributes, text) {
  const shape = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
  if (text !== undefined) shape.textContent = text;
  parent.append(shape);
  return shape;
}

function clusterLink(j) {
  return make("button", { type: "button", className: "link", textContent: `#${j}`, onclick: () => choose(j, true) });
}

// ---- tooltip ------------------------------------------------------------------------------------------------------

const tip = byId("tip");

/** Rows of label and value under a title, beside the point (x, y) of the window. */
function showTip(x, y, title, pairs, extra) {
  const table = make("table");
  for (const [label, value] of pairs) {
    const row = table.insertRow();
    row.append(make("th", { scope: "row", textContent: label }), make("td", { textContent: value }));
  }
  tip.replaceChildren(make("strong", { textContent: title }), table, ...(extra ? [extra] : []));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
  const above = y + 14 + box.height > innerHeight; // then over the pointer, not under it
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, above ? y - 14 - box.height : y + 14)}px`;
}

function hideTip() {
  tip.hidden = true;
}

// ---- examples -----------------------------------------------------------------------------------------------------

function examplesOf(j) {
  const all = [];
  for (let e = offsets[j] ?? 0; e < (offsets[j + 1] ?? 0); e++) all.push(e);
  return all;
}

function nameOf(e) {
  return data.names ? data.names[e] : null;
}

function titleOf(e) {
  return nameOf(e) ?? `row ${data.rows[e]}`;
}

/** The picture of an example, `side` pixels high and wide, or null. */
function picture(e, side) {
  const cell = data.pictures ? data.pictures.cells[e] : -1;
  if (cell < 0) return null;
  const { columns, rows, side: pixels } = data.pictures;
  const sheet = Math.floor(cell / columns ** 2);
  const place = cell % columns ** 2;
  const label = `picture of ${titleOf(e)}`;
  const thumb = make("span", { className: `thumb sheet${sheet}`, role: "img", title: titleOf(e), "aria-label": label });
  thumb.style.width = thumb.style.height = `${side}px`;
  if (pixels === 0) {
    thumb.classList.add("whole");
  } else {
    thumb.style.backgroundSize = `${columns * side}px ${rows[sheet] * side}px`;
    thumb.style.backgroundPosition = `${-(place % columns) * side}px ${-Math.floor(place / columns) * side}px`;
    if (side >= 2 * pixels) thumb.classList.add("pixels");
  }
  return thumb;
}

/** A few examples for the table: a line of pictures, a line of names, or else the numbers of the rows. */
function examplesCell(j) {
  const all = examplesOf(j);
  const cell = make("td");
  const pictures = all.slice(0, 8).map((e) => picture(e, 40)).filter(Boolean);
  if (pictures.length) cell.append(make("div", { className: "examples" }, ...pictures));
  const text = (e) => make("bdi", { textContent: data.names ? nameOf(e) : data.rows[e], title: titleOf(e) });
  if (data.names || !pictures.length) {
    const few = all.slice(0, data.names ? 3 : 6);
    cell.append(make("div", { className: "examples" }, ...few.map(text)));
  }
  return cell;
}

function examplesList(j) {
  const list = make("ol");
  for (const e of examplesOf(j)) {
    const item = make("li");
    const thumb = picture(e, 56);
    const text = make("span", { className: "text" });
    if (thumb) item.append(thumb);
    if (nameOf(e) !== null) text.append(make("bdi", { textContent: nameOf(e) }), make("br"));
    const numbers = `row ${data.rows[e]}, distance ${show(data.distances[e])}`;
    text.append(make("span", { className: "quiet", textContent: numbers }));
    item.append(text);
    list.append(item);
  }
  return list;
}
