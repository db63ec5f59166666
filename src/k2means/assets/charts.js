// The energy over time, and the histogram of the sizes.

// ---- scales of the charts -----------------------------------------------------------------------------------------

/** From [low, high] to pixels [from, to]; `ticks` are round numbers between. */
function scale(low, high, from, to, log, count) {
  const bend = log ? Math.log : (v) => v;
  const [a, b] = [bend(low), bend(high)];
  const at = (v) => from + ((bend(v) - a) / (b - a || 1)) * (to - from);
  return { at, ticks: log && high / low > 20 ? decades(low, high, count) : roundTicks(low, high, count) };
}

function roundTicks(low, high, count) {
  if (!(high > low)) return [low];
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((f) => f * power >= raw * 0.999) * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12); i++) ticks.push(i * step + 0); // no -0
  return ticks;
}

function decades(low, high, count) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const factors = last - first <= 2 ? [1, 2, 5] : [1];
  const stride = Math.max(1, Math.ceil((last - first) / count));
  const ticks = [];
  for (let p = first; p <= last; p += stride) ticks.push(...factors.map((f) => f * 10 ** p));
  return ticks.filter((t) => t >= low * 0.999 && t <= high * 1.001);
}

function shortTick(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size < 1e-3 && size > 0))
    return value.toExponential().replace(/(\.\d{1,3})\d*/, "$1").replace("e+", "e");
  return new Intl.NumberFormat("en", { maximumSignificantDigits: 6 }).format(value);
}

function axes(svg, frame, x, y, labels) {
  for (const tick of y.ticks) {
    draw(svg, "line", { class: "grid", x1: frame.left, x2: frame.right, y1: y.at(tick), y2: y.at(tick) });
    draw(svg, "text", { x: frame.left - 6, y: y.at(tick) + 4, "text-anchor": "end" }, shortTick(tick));
  }
  draw(svg, "line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom });
  for (const tick of x.ticks) {
    draw(svg, "line", { class: "axis", x1: x.at(tick), x2: x.at(tick), y1: frame.bottom, y2: frame.bottom + 4 });
    draw(svg, "text", { x: x.at(tick), y: frame.bottom + 17, "text-anchor": "middle" }, shortTick(tick));
  }
  draw(svg, "text", { x: frame.right, y: frame.bottom + 33, "text-anchor": "end" }, labels.x);
  draw(svg, "text", { x: 0, y: 11 }, labels.y);
}

// ---- energy over time ---------------------------------------------------------------------------------------------

const energyChart = {
  box: byId("energy"),
  svg: byId("energy").firstElementChild,
  choices: byId("energy-choices"),
  points: [], // [x, y, index in the trace]
  at: -1,

  start() {
    const { energies } = data.trace;
    const known = energies.filter((e) => e !== null);
    if (known.length === 0) {
      this.choices.hidden = true;
      byId("energy-hint").textContent = "There is no trace of the iterations.";
      this.box.hidden = true;
      return;
    }
    this.choices.log.disabled = Math.min(...known) <= 0;
    this.choices.addEventListener("change", () => this.draw());
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.leave());
    this.svg.addEventListener("blur", () => this.leave());
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.box);
    const [first, last] = [known[0], known[known.length - 1]];
    this.svg.setAttribute("aria-label", `Energy from ${show(first)} to ${show(last)} in ${energies.length} iterations`);
  },

  draw() {
    const { svg } = this;
    svg.replaceChildren();
    const width = this.box.clientWidth;
    const frame = { left: 74, right: width - 14, top: 24, bottom: 228 };
    const along = this.choices.along.value;
    const kept = data.trace.energies.map((e, i) => i).filter((i) => data.trace.energies[i] !== null);
    const xs = kept.map((i) => data.trace[along][i]);
    const ys = kept.map((i) => data.trace.energies[i]);
    const [low, high] = [Math.min(...ys), Math.max(...ys)];
    const room = (high - low) * 0.04 || Math.abs(high) * 0.01 || 1;
    const log = this.choices.log.checked;
    const bottom = log ? low * (low / high) ** 0.04 * 0.9999 : low - room;
    const top = log ? high * (high / low) ** 0.04 * 1.0001 : high + room;
    const counted = along === "iterations";
    const end = Math.max(...xs, counted ? 2 : 0);
    const x = scale(counted ? 1 : 0, end, frame.left, frame.right, false, width / 110);
    if (counted) x.ticks = x.ticks.filter(Number.isInteger);
    const y = scale(bottom, top, frame.bottom, frame.top, log, 6);
    axes(svg, frame, x, y, { x: along, y: "energy" });
    this.points = kept.map((i, p) => [x.at(xs[p]), y.at(ys[p]), i]);
    const corners = this.points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`);
    draw(svg, "polyline", { class: "curve", points: corners.join(" ") });
    if (this.points.length <= 60)
      for (const [a, b] of this.points) draw(svg, "circle", { class: "point", cx: a, cy: b, r: 3 });
    this.marker = draw(svg, "circle", { class: "here", r: 6, visibility: "hidden" });
  },

  go(p) {
    this.at = clamp(p, 0, this.points.length - 1);
    const [x, y, i] = this.points[this.at];
    this.marker.setAttribute("cx", x);
    this.marker.setAttribute("cy", y);
    this.marker.setAttribute("visibility", "visible");
    const box = this.svg.getBoundingClientRect();
    showTip(box.left + x, box.top + y, `Iteration ${show(data.trace.iterations[i])}`, [
      ["energy", show(data.trace.energies[i])],
      ["seconds so far", show(data.trace.seconds[i])],
      ["rows moved", show(data.trace.moved[i])],
    ]);
  },

  point(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    let best = 0;
    this.points.forEach((point, p) => {
      if (Math.abs(point[0] - x) < Math.abs(this.points[best][0] - x)) best = p;
    });
    this.go(best);
  },

  leave() {
    hideTip();
    this.at = -1;
    this.marker.setAttribute("visibility", "hidden");
  },

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -1e9, End: 1e9 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    this.go(this.at + step);
  },
};

// ---- histogram of sizes -------------------------------------------------------------------------------------------

/** Whole-numbered bins [low, high] of the sizes above 0; each wider than the one before if they differ much. */
function sizeBins() {
  const filled = data.sizes.filter((s) => s > 0);
  if (filled.length === 0) return { bins: [], log: false };
  const low = filled.reduce((a, b) => Math.min(a, b));
  const high = filled.reduce((a, b) => Math.max(a, b));
  const log = high / low > 50;
  const starts = log ? doublings(low, high) : steps(low, high);
  const bins = starts.slice(0, -1).map((from, i) => ({ low: from, high: starts[i + 1] - 1, count: 0 }));
  for (const size of filled) bins[starts.findLastIndex((from) => from <= size)].count += 1;
  return { bins, log };
}

function steps(low, high) {
  const width = Math.ceil((high + 1 - low) / clamp(Math.ceil(Math.sqrt(k)), 6, 36));
  const starts = [low];
  while (starts[starts.length - 1] <= high) starts.push(starts[starts.length - 1] + width);
  return starts;
}

/** Powers of two, and numbers between where that does not make bins of one and of two whole numbers neighbours. */
function doublings(low, high) {
  const parts = low >= 64 ? 4 : low >= 8 ? 2 : 1;
  const starts = [];
  for (let i = Math.floor(Math.log2(low) * parts); ; i++) {
    starts.push(Math.round(2 ** (i / parts)));
    if (starts[starts.length - 1] > high) return starts;
  }
}

const histogram = {
  box: byId("histogram"),
  svg: byId("histogram").firstElementChild,
  at: -1,

  start() {
    Object.assign(this, sizeBins());
    if (this.bins.length === 0) {
      this.box.hidden = byId("histogram-hint").hidden = true;
      return;
    }
    const ends = `${show(this.bins[0].low)} to ${show(this.bins[this.bins.length - 1].high)}`;
    this.svg.setAttribute("aria-label", `Histogram of the sizes of ${show(k)} clusters, from ${ends} members`);
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("blur", () => this.leave());
    new ResizeObserver(() => this.draw()).observe(this.box);
  },

  draw() {
    const { svg, bins } = this;
    svg.replaceChildren();
    const width = this.box.clientWidth;
    const frame = { left: 52, right: width - 14, top: 24, bottom: 160 };
    const x = scale(bins[0].low, bins[bins.length - 1].high + 1, frame.left, frame.right, this.log, width / 90);
    x.ticks = x.ticks.filter(Number.isInteger);
    const most = bins.reduce((a, b) => Math.max(a, b.count), 0);
    const y = scale(0, most, frame.bottom, frame.top, false, 4);
    y.ticks = y.ticks.filter(Number.isInteger);
    axes(svg, frame, x, y, { x: this.log ? "members (log scale)" : "members", y: "clusters" });
    this.columns = bins.map((bin, i) => this.column(bin, i, x, y, frame));
  },

  column(bin, i, x, y, frame) {
    const group = draw(this.svg, "g", { class: "column" });
    const [from, to] = [x.at(bin.low), x.at(bin.high + 1)];
    const height = bin.count ? Math.max(1.5, frame.bottom - y.at(bin.count)) : 0;
    const gap = to - from > 4 ? 1 : 0;
    draw(group, "rect", { class: "cover", x: from, width: to - from, y: frame.top, height: frame.bottom - frame.top });
    const inner = Math.max(1, to - from - 2 * gap);
    draw(group, "rect", { class: "bar-shape", x: from + gap, width: inner, y: frame.bottom - height, height });
    group.addEventListener("pointermove", (event) => this.tell(i, event.clientX, event.clientY));
    group.addEventListener("pointerleave", hideTip);
    group.addEventListener("click", () => this.list(i));
    return group;
  },

  tell(i, x, y) {
    const { low, high, count } = this.bins[i];
    const range = low === high ? show(low) : `${show(low)} to ${show(high)}`;
    showTip(x, y, `${range} member${high === 1 ? "" : "s"}`, [["clusters", show(count)], ["share", percent(count, k)]]);
  },

  list(i) {
    const { low, high } = this.bins[i];
    search(low === high ? `size=${low}` : `size>=${low} size<=${high}`);
  },

  leave() {
    this.columns?.[this.at]?.classList.remove("here-bar");
    this.at = -1;
    hideTip();
  },

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -1e9, End: 1e9 }[event.key];
    if (event.key === "Enter" && this.at >= 0) this.list(this.at);
    if (step === undefined) return;
    event.preventDefault();
    this.columns[this.at]?.classList.remove("here-bar");
    this.at = clamp(this.at + step, 0, this.bins.length - 1);
    const box = this.columns[this.at].getBoundingClientRect();
    this.columns[this.at].classList.add("here-bar");
    this.tell(this.at, box.right, box.top);
  },
};

function listExtremes() {
  const order = [...data.sizes.keys()].sort((a, b) => data.sizes[b] - data.sizes[a] || a - b);
  const filled = order.filter((j) => data.sizes[j] > 0);
  const empty = order.filter((j) => data.sizes[j] === 0);
  const block = (title, clusters, members) => {
    const list = make("ul");
    for (const j of clusters) {
      const entry = make("li", {}, clusterLink(j));
      if (members) entry.append(make("span", { textContent: ` ${show(data.sizes[j])}` }));
      list.append(entry);
    }
    return make("div", {}, make("h3", { textContent: title }), list);
  };
  const none = block(empty.length ? `Empty: ${show(empty.length)}` : "Empty: none", empty.slice(0, 6), false);
  if (empty.length > 6) {
    const all = { type: "button", className: "link", textContent: "list all", onclick: () => search("size=0") };
    none.lastChild.append(make("li", {}, make("button", all)));
  }
  const few = clamp(Math.floor(filled.length / 2), 1, 5);
  const largest = filled.slice(0, few);
  const smallest = filled.sort((a, b) => data.sizes[a] - data.sizes[b] || a - b).slice(0, few);
  byId("extremes").append(block("Largest", largest, true), block("Smallest", smallest, true), none);
}
