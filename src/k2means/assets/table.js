// The table of the clusters: sorted, searched, paged.

const gapOf = (j) => (data.gaps && data.degree ? data.gaps[j * data.degree] : null);

const ALL_COLUMNS = [
  { key: "cluster", title: "cluster", value: (j) => j, cell: (j) => [clusterLink(j)] },
  { key: "size", title: "members", value: (j) => data.sizes[j], cell: (j) => [show(data.sizes[j])] },
  { key: "share", title: "of rows", value: (j) => data.sizes[j], cell: (j) => [percent(data.sizes[j], rowsTotal)] },
  { key: "mean", title: "mean energy", value: (j) => means[j], cell: (j) => [show(means[j])] },
  { key: "energy", title: "energy", value: (j) => data.energies[j], cell: (j) => [show(data.energies[j])] },
  { key: "gap", title: "nearest center", value: gapOf, cell: (j) => [nearestCenter(j)] },
];
const COLUMNS = ALL_COLUMNS.filter((column) => column.key !== "gap" || data.near);

function nearestCenter(j) {
  const [near] = neighborsOf(j);
  return near ? `#${near[0]} at ${show(near[1])}` : "–";
}

function headTable() {
  for (const column of COLUMNS) {
    const arrow = make("span", { "aria-hidden": "true" });
    const button = make("button", { type: "button", onclick: () => sortBy(column.key) }, column.title, arrow);
    byId("columns").append(make("th", { scope: "col", "data-key": column.key }, button));
  }
  const examples = data.names || data.pictures ? "nearest rows" : "nearest rows (their numbers)";
  if (data.rows.length) byId("columns").append(make("th", { scope: "col", textContent: examples }));
  const words = data.names ? "a word or “some words” of the nearest rows’ names, " : "";
  const samples = ["size<10", "mean>=2.5", "energy>100", ...(data.near ? ["gap<1.5"] : [])];
  const conditions = samples.flatMap((text, i) => [i ? ", " : "", make("code", { textContent: text })]);
  const ways = `A cluster’s number, ${words}or a condition: `;
  byId("search-hint").append(ways, ...conditions, ". All of several must hold.");
}

function sortBy(key) {
  state.rising = state.sort === key ? !state.rising : key === "cluster"; // numbers from the largest, at first
  state.sort = key;
  state.page = 0;
  arrange();
}

/** Sort what was found and show it. What has no value comes last. */
function arrange() {
  const { value } = COLUMNS.find((column) => column.key === state.sort);
  const sign = state.rising ? 1 : -1;
  state.found.sort((a, b) => {
    const [u, v] = [value(a), value(b)];
    if (u === null || v === null) return (u === null) - (v === null) || a - b;
    return sign * (u - v) || a - b;
  });
  fillTable();
}

function fillTable() {
  for (const head of byId("columns").children) {
    const key = head.dataset.key;
    if (!key) continue;
    const direction = key === state.sort ? (state.rising ? "ascending" : "descending") : "none";
    head.setAttribute("aria-sort", direction);
    head.firstChild.lastChild.textContent = { ascending: " ▲", descending: " ▼", none: "" }[direction];
  }
  const pages = Math.max(1, Math.ceil(state.found.length / PAGE));
  state.page = clamp(state.page, 0, pages - 1);
  byId("rows").replaceChildren(...state.found.slice(state.page * PAGE, (state.page + 1) * PAGE).map(rowOf));
  byId("page").value = state.page + 1;
  byId("page").max = pages;
  byId("pages").textContent = `of ${show(pages)}`;
  byId("first").disabled = byId("previous").disabled = state.page === 0;
  byId("last").disabled = byId("next").disabled = state.page === pages - 1;
}

function rowOf(j) {
  const row = make("tr", { "data-cluster": j, "aria-current": `${j === state.chosen}` });
  for (const column of COLUMNS) row.append(make("td", {}, ...column.cell(j)));
  if (data.rows.length) row.append(examplesCell(j));
  row.addEventListener("click", (event) => {
    if (event.target.tagName !== "BUTTON" && getSelection().isCollapsed) choose(j, true);
  });
  return row;
}

// ---- search -------------------------------------------------------------------------------------------------------

const FIELDS = {
  size: (j) => data.sizes[j],
  members: (j) => data.sizes[j],
  mean: (j) => means[j],
  energy: (j) => data.energies[j],
  gap: gapOf,
  cluster: (j) => j,
};
const COMPARE = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "=": (a, b) => a === b,
  "!=": (a, b) => a !== b,
};
const CONDITION = new RegExp(`^(${Object.keys(FIELDS).join("|")})(<=|>=|!=|<|>|=)(.*)$`, "i");
const SPACES = new RegExp(`\\b(${Object.keys(FIELDS).join("|")})\\s*(<=|>=|!=|<|>|=)\\s*`, "gi");

const fold = (text) => text.normalize("NFKC").toLowerCase();
let haystacks = null; // the names of each cluster, made at the first search

function mentions(j, word) {
  if (!data.names) return false;
  haystacks ??= data.sizes.map((_, i) => fold(examplesOf(i).map(nameOf).join("\n")));
  return haystacks[j].includes(word);
}

/** What a cluster must fulfil, one test for each term; null for a condition that is not finished. */
function testOf(term) {
  const condition = CONDITION.exec(term);
  if (condition) {
    const [, name, sign, text] = condition;
    const limit = Number(text);
    if (text === "" || Number.isNaN(limit)) return null;
    const [value, holds] = [FIELDS[name.toLowerCase()], COMPARE[sign]];
    return (j) => value(j) !== null && holds(value(j), limit);
  }
  if (/^#\d+$/.test(term)) return (j) => j === Number(term.slice(1));
  const word = fold(term.replaceAll('"', ""));
  if (/^\d+$/.test(term)) return (j) => j === Number(term) || mentions(j, word);
  return (j) => mentions(j, word);
}

function filter() {
  const terms = byId("search").value.replace(SPACES, "$1$2").replace(/[“”„]/g, '"').match(/"[^"]*"?|\S+/g) ?? [];
  const tests = terms.map(testOf);
  const open = terms.filter((_, i) => tests[i] === null);
  const ready = tests.filter((test) => test !== null);
  state.filtered = ready.length > 0;
  state.found = [...data.sizes.keys()].filter((j) => ready.every((test) => test(j)));
  state.page = 0;
  const count = `${show(state.found.length)} of ${show(k)} clusters`;
  byId("found").textContent = open.length ? `${count}; “${open[0]}” needs a number` : count;
  byId("clear").disabled = byId("search").value === "";
  arrange();
  map.later();
}

function search(text) {
  byId("search").value = text;
  filter();
}

function turn(page) {
  state.page = page;
  fillTable();
}
