// The chosen cluster, which all parts show, and the start of it all.

function neighborsOf(j) {
  const { near, gaps, degree } = data;
  return near ? near.slice(j * degree, (j + 1) * degree).map((other, i) => [other, gaps[j * degree + i]]) : [];
}

function numbersOf(j) {
  const pairs = [["members", show(data.sizes[j])], ["mean energy", show(means[j])]];
  const near = neighborsOf(j);
  return near.length ? [...pairs, ["neighbours", near.map(([other]) => `#${other}`).join(", ")]] : pairs;
}

/** Choose a cluster; its row is shown in the table, and the map moves to it if `reveal`. */
function choose(j, reveal) {
  const [inTable, inDetail] = ["rows", "detail"].map((id) => byId(id).contains(document.activeElement));
  state.chosen = j;
  if (!state.found.includes(j)) search("");
  state.page = Math.floor(state.found.indexOf(j) / PAGE);
  fillTable();
  describe(j);
  // what had the focus is gone; its successor gets it
  if (inTable) document.querySelector("#rows tr[aria-current=true] button").focus();
  if (inDetail) byId("detail").focus();
  if (reveal) map.reveal(j);
  else map.later();
}

function describe(j) {
  const near = make("dd");
  for (const [other, gap] of neighborsOf(j)) near.append(make("div", {}, clusterLink(other), ` at ${show(gap)}`));
  const list = make("dl");
  const pairs = [
    ["members", `${show(data.sizes[j])} (${percent(data.sizes[j], rowsTotal)})`],
    ["mean energy", show(means[j])],
    ["energy", `${show(data.energies[j])} (${percent(data.energies[j], energyTotal)})`],
  ];
  for (const [label, value] of pairs)
    list.append(make("dt", { textContent: label }), make("dd", { textContent: value }));
  if (near.childNodes.length) list.append(make("dt", { textContent: "neighbours" }), near);
  const examples = examplesOf(j).length ? [make("h3", { textContent: "Nearest rows" }), examplesList(j)] : [];
  byId("detail").replaceChildren(make("h3", { textContent: `Cluster ${j}` }), list, ...examples);
}

function start() {
  headTable();
  byId("search").addEventListener("input", filter);
  byId("clear").onclick = () => search("");
  byId("first").onclick = () => turn(0);
  byId("previous").onclick = () => turn(state.page - 1);
  byId("next").onclick = () => turn(state.page + 1);
  byId("last").onclick = () => turn(Infinity);
  byId("page").onchange = () => turn((parseInt(byId("page").value, 10) || 1) - 1);
  energyChart.start();
  histogram.start();
  listExtremes();
  map.start();
  addEventListener("scroll", hideTip, { passive: true });
  filter();
}

start();
