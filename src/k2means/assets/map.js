// The map of the centers: zoom, pan, hover.

// viridis without its ends, which do not stand out from the paper
const RAMPS = {
  light: ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#86c83c"],
  dark: ["#6a4fc0", "#4f78c4", "#3b96b8", "#2fb3a0", "#5ccb78", "#a5db4a", "#fde725"],
};

function rampColor(stops, t) {
  const place = clamp(t, 0, 1) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(place));
  const mix = (c) => {
    const [a, b] = [stops[i], stops[i + 1]].map((stop) => parseInt(stop.slice(1 + 2 * c, 3 + 2 * c), 16));
    return Math.round(a + (b - a) * (place - i));
  };
  return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
}

function quantile(sorted, q) {
  return sorted[Math.round(q * (sorted.length - 1))];
}

/** Pairs of neighbours, each once. */
function edgesOf() {
  const pairs = [];
  const { near, degree } = data;
  for (let i = 0; near && i < near.length; i++) {
    const [a, b] = [Math.floor(i / degree), near[i]];
    const back = near.slice(b * degree, (b + 1) * degree).includes(a);
    if (a < b || !back) pairs.push([a, b]);
  }
  return pairs;
}

const map = {
  canvas: byId("map"),
  zoom: 1,
  middle: [0, 0], // of the view, in the coordinates of the data
  hover: -1,
  pending: false,
  edges: edgesOf(),
  order: [...data.sizes.keys()].sort((a, b) => data.sizes[b] - data.sizes[a]), // small ones are drawn on top
  biggest: data.sizes.reduce((a, b) => Math.max(a, b), 1),

  start() {
    this.context = this.canvas.getContext("2d");
    const known = means.filter((m) => m !== null).sort((a, b) => a - b);
    this.colorBy(known);
    byId("graph-choice").hidden = this.edges.length === 0;
    const graph = this.edges.length ? `Lines join a center to its ${data.degree} nearest. ` : "";
    byId("map-hint").textContent =
      `Principal coordinates, which show ${percent(data.share, 1)} of the variance of the centers. ` +
      "The larger a point, the more members; a ring is an empty cluster. " +
      `${graph}Drag to move; click, then turn the wheel to zoom. Keys: arrows, +, −, 0.`;
    this.extent = [0, 1].map((axis) => (axis ? data.y : data.x).reduce((a, b) => Math.max(a, b), 0));
    this.reset();
    this.listen();
    this.theme();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  },

  /** Colours from the 2nd to the 98th percentile, bent so that the median has the middle one. */
  colorBy(known) {
    byId("legend").hidden = known.length === 0;
    if (known.length === 0) return;
    const median = quantile(known, 0.5);
    [this.low, this.high] = [quantile(known, 0.02), quantile(known, 0.98)];
    const part = (median - this.low) / (this.high - this.low);
    this.bend = part > 0 && part < 1 ? clamp(Math.log(0.5) / Math.log(part), 0.3, 3) : 1;
    byId("legend-low").textContent = (known[0] < this.low ? "≤ " : "") + show(this.low);
    const most = (quantile(known, 1) > this.high ? "≥ " : "") + show(this.high);
    byId("legend-high").textContent = `${most}, median ${show(median)}`;
  },

  /** The place of a mean energy on the ramp, from 0 to 1. */
  warmth(mean) {
    return this.high > this.low ? clamp((mean - this.low) / (this.high - this.low), 0, 1) ** this.bend : 0.5;
  },

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", () => (this.drag = null));
    canvas.addEventListener("pointerleave", () => this.look(-1));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    byId("zoom-in").onclick = () => this.magnify(1.6);
    byId("zoom-out").onclick = () => this.magnify(1 / 1.6);
    byId("zoom-reset").onclick = () => this.reset();
    byId("graph").onchange = () => this.later();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.theme());
  },

  /** Colours follow the scheme of the page. */
  theme() {
    const style = getComputedStyle(document.documentElement);
    this.colors = {};
    for (const name of ["paper", "ink", "quiet", "mark", "edge"])
      this.colors[name] = style.getPropertyValue(`--${name}`).trim();
    const stops = RAMPS[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
    const { quiet } = this.colors;
    this.fills = means.map((m, j) => (m !== null ? rampColor(stops, this.warmth(m)) : data.sizes[j] ? quiet : null));
    const ramp = byId("ramp").getContext("2d");
    for (let i = 0; i < 96; i++) {
      ramp.fillStyle = rampColor(stops, i / 95);
      ramp.fillRect(i, 0, 1, 10);
    }
    this.later();
  },

  resize() {
    const { canvas } = this;
    const density = window.devicePixelRatio || 1;
    [this.width, this.height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = Math.round(this.width * density);
    canvas.height = Math.round(this.height * density);
    this.context.setTransform(density, 0, 0, density, 0, 0);
    const largest = clamp(0.6 * Math.sqrt((this.width * this.height) / k), 3.5, 22);
    const smallest = Math.max(1.2, largest / 4);
    this.radii = data.sizes.map((s) => smallest + (largest - smallest) * Math.sqrt(s / this.biggest));
    this.fit = Math.min((this.width - 70) / (this.extent[0] || 1), (this.height - 70) / (this.extent[1] || 1));
    this.later();
  },

  reset() {
    this.zoom = 1;
    this.middle = this.extent.map((e) => e / 2);
    this.later();
  },

  /** Where a center is drawn, in pixels of the canvas. */
  place(j) {
    const s = this.fit * this.zoom;
    return [this.width / 2 + (data.x[j] - this.middle[0]) * s, this.height / 2 - (data.y[j] - this.middle[1]) * s];
  },

  growth() {
    return clamp(Math.sqrt(this.zoom), 0.6, 4);
  },

  /** The center under a point of the canvas, or -1. */
  under(x, y) {
    let best = -1;
    let least = Infinity;
    const growth = this.growth();
    for (let j = 0; j < k; j++) {
      const [px, py] = this.place(j);
      const distance = Math.hypot(px - x, py - y);
      if (distance < least && distance <= this.radii[j] * growth + 4) [best, least] = [j, distance];
    }
    return best;
  },

  later() {
    if (this.pending || !this.width) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  },

  draw() {
    const { context, width, height } = this;
    context.clearRect(0, 0, width, height);
    const places = data.sizes.map((_, j) => this.place(j));
    const seen = places.map(([x, y]) => x > -30 && x < width + 30 && y > -30 && y < height + 30);
    const visible = seen.filter(Boolean).length;
    const found = state.filtered ? new Set(state.found) : null;
    if (byId("graph").checked) this.drawEdges(places, seen, found);
    this.drawCenters(places, seen, found);
    if (visible <= 60) this.drawNumbers(places, seen, found);
    for (const j of [state.chosen, this.hover]) if (j >= 0) this.drawMark(j, places);
  },

  drawEdges(places, seen, found) {
    const { context } = this;
    const shown = this.edges.filter(([a, b]) => seen[a] && seen[b]); // long lines from elsewhere say nothing here
    context.strokeStyle = this.colors.edge;
    context.lineWidth = shown.length > 5000 ? 0.6 : 1;
    context.globalAlpha = clamp(9 / Math.sqrt(shown.length || 1), 0.13, 0.6) * (found ? 0.4 : 1);
    context.beginPath();
    shown.forEach(([a, b], i) => {
      context.moveTo(...places[a]);
      context.lineTo(...places[b]);
      if (i % 400 === 399) {
        context.stroke(); // parts add up where lines are dense; one path would not
        context.beginPath();
      }
    });
    context.stroke();
    context.globalAlpha = 1;
  },

  drawCenters(places, seen, found) {
    const { context } = this;
    const growth = this.growth();
    for (const j of this.order) {
      if (!seen[j]) continue;
      context.globalAlpha = found && !found.has(j) ? 0.12 : 0.92;
      context.beginPath();
      context.arc(...places[j], this.radii[j] * growth, 0, 7);
      if (this.fills[j] === null) {
        context.strokeStyle = this.colors.quiet;
        context.lineWidth = 1;
        context.stroke(); // an empty cluster is a ring
      } else {
        context.fillStyle = this.fills[j];
        context.fill();
      }
    }
    context.globalAlpha = 1;
  },

  drawNumbers(places, seen, found) {
    const { context } = this;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.strokeStyle = this.colors.paper;
    context.fillStyle = this.colors.ink;
    places.forEach(([x, y], j) => {
      if (!seen[j] || (found && !found.has(j))) return;
      const left = x + this.radii[j] * this.growth() + 6;
      context.strokeText(`${j}`, left, y);
      context.fillText(`${j}`, left, y);
    });
  },

  drawMark(j, places) {
    const { context } = this;
    context.strokeStyle = this.colors.mark;
    context.lineWidth = 1.5;
    for (const [other] of neighborsOf(j)) {
      context.beginPath();
      context.moveTo(...places[j]);
      context.lineTo(...places[other]);
      context.stroke();
    }
    context.lineWidth = 2.5;
    context.beginPath();
    context.arc(...places[j], this.radii[j] * this.growth() + 3, 0, 7);
    context.stroke();
  },

  /** Zoom by a factor; the point (x, y) of the canvas stays where it is. */
  magnify(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.fit * this.zoom;
    this.zoom = clamp(this.zoom * factor, 0.5, 400);
    const after = this.fit * this.zoom;
    const [dx, dy] = [x - this.width / 2, y - this.height / 2];
    this.middle[0] += dx / before - dx / after;
    this.middle[1] -= dy / before - dy / after;
    this.later();
  },

  pan(dx, dy) {
    const s = this.fit * this.zoom;
    this.middle[0] = clamp(this.middle[0] - dx / s, 0, this.extent[0]);
    this.middle[1] = clamp(this.middle[1] + dy / s, 0, this.extent[1]);
    this.later();
  },

  press(event) {
    if (event.button !== 0) return;
    this.drag = { x: event.clientX, y: event.clientY, far: false };
    this.canvas.setPointerCapture(event.pointerId);
  },

  move(event) {
    if (this.drag) {
      const [dx, dy] = [event.clientX - this.drag.x, event.clientY - this.drag.y];
      if (!this.drag.far && Math.hypot(dx, dy) < 4) return; // a click, so far
      this.canvas.classList.add("dragging");
      this.look(-1);
      this.pan(dx, dy);
      this.drag = { x: event.clientX, y: event.clientY, far: true };
      return;
    }
    this.look(this.under(event.offsetX, event.offsetY), event.clientX, event.clientY);
  },

  release(event) {
    const clicked = this.drag && !this.drag.far;
    this.drag = null;
    this.canvas.classList.remove("dragging");
    const j = this.under(event.offsetX, event.offsetY);
    if (clicked && j >= 0) choose(j, false);
  },

  /** Show the numbers of the center under the pointer. */
  look(j, x, y) {
    this.canvas.classList.toggle("over", j >= 0);
    if (j < 0) {
      hideTip();
    } else {
      const thumbs = make("div", { className: "thumbs" });
      for (const e of examplesOf(j).slice(0, 4)) thumbs.append(...[picture(e, 48)].filter(Boolean));
      const e = examplesOf(j)[0];
      const nearest = e !== undefined && data.names ? [["nearest row", nameOf(e)]] : [];
      showTip(x, y, `Cluster ${j}`, [...numbersOf(j), ...nearest], thumbs.children.length ? thumbs : null);
    }
    if (j !== this.hover) {
      this.hover = j;
      this.later();
    }
  },

  wheel(event) {
    if (document.activeElement !== this.canvas && !event.ctrlKey) return; // the page scrolls until the map is clicked
    event.preventDefault();
    const turn = clamp(event.deltaY * (event.deltaMode === 1 ? 20 : 1), -200, 200);
    this.magnify(Math.exp(-turn / (event.ctrlKey ? 100 : 300)), event.offsetX, event.offsetY);
  },

  key(event) {
    const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) this.pan(...step);
    else if (event.key === "+" || event.key === "=") this.magnify(1.4);
    else if (event.key === "-" || event.key === "−") this.magnify(1 / 1.4);
    else if (event.key === "0") this.reset();
    else return;
    event.preventDefault();
  },

  /** Move the view if a center is outside of it. */
  reveal(j) {
    const [x, y] = this.place(j);
    if (x < 10 || y < 10 || x > this.width - 10 || y > this.height - 10) this.middle = [data.x[j], data.y[j]];
    this.later();
  },
};
