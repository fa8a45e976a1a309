// The screens. The address after # holds the state, so back and forward work, and a link says it all.

const SIDES = ["failing", "passing", "near"];
const PAGE = 50;
const FIRST = 12; // of a side, where all sides are shown

function readFilter(text) {
  try {
    const [name, ...rest] = JSON.parse(text);
    const place = report.columns.findIndex((column) => column.name === name);
    return place < 0 || !rest.length ? [] : [{ place, text, rest }];
  } catch {
    return []; // an address that somebody edited
  }
}

function readState() {
  const query = new URLSearchParams(location.hash.slice(1));
  const number = (name, size, otherwise = null) => {
    const value = Number.parseInt(query.get(name) ?? "", 10);
    return value >= 0 && value < size ? value : otherwise;
  };
  const rule = number("rule", report.rules.length);
  const other = ["compare", "record", "keys"].find((name) => query.has(name));
  return {
    screen: rule !== null ? "rule" : other ?? "modes",
    rule,
    row: number("row", report.rows),
    side: SIDES.indexOf(query.get("side")),
    start: number("start", report.rows, 0),
    words: query.get("words") ?? "",
    filters: query.getAll("filter").flatMap(readFilter),
    first: number("first", report.models.length, 0),
    second: number("second", report.models.length, 1),
    cell: number("cell", 4, 1),
  };
}

// the address of a state: what is null is left out, and filters are a list
function link(content) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(content)) {
    if (Array.isArray(value)) value.forEach((one) => query.append(name, one));
    else if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  return `#${query}`;
}

// the address of the same list of examples, with a change
function linkList(now, change) {
  const filter = now.filters.map((one) => one.text);
  return link({ rule: now.rule, side: SIDES[now.side], words: now.words, filter, ...change });
}

function linkFilter(now, column, ...rest) {
  const filter = [...now.filters.map((one) => one.text), JSON.stringify([column.name, ...rest])];
  return linkList(now, { filter });
}

// -------------------------------------------------------------------------------------- examples

function makeTest({ rest }, column) {
  if (column.kind === "number" && rest.length === 2) {
    return (row) => column.at(row) !== null && column.at(row) >= rest[0] && column.at(row) <= rest[1];
  }
  return (row) => column.at(row) === rest[0];
}

function makeSearch(columns, words) {
  const wanted = words.toLowerCase();
  const texts = columns.filter((column) => column.kind === "text" || column.name === report.id);
  const marks = texts.map((column) => lower(column).map((text) => text.includes(wanted)));
  return (row) => texts.some((column, i) => marks[i][column.place(row)]);
}

// the rows of each side that pass all filters; typical ones, and those nearest to a threshold, first
function select(now, columns) {
  const tests = now.filters.map((filter) => makeTest(filter, columns[filter.place]));
  if (now.words) tests.push(makeSearch(columns, now.words));
  const { first } = report.rules[now.rule];
  const early = new Set(first);
  return sortRows(now.rule).map((bytes) => {
    const rows = first.filter((row) => isIn(bytes, row));
    bytes.forEach((byte, i) => {
      for (let bit = 0; byte >> bit; bit++) {
        if ((byte >> bit) & 1 && !early.has(8 * i + bit)) rows.push(8 * i + bit);
      }
    });
    return rows.filter((row) => tests.every((passes) => passes(row)));
  });
}

const isText = (column) => column.kind === "text" && column.name !== report.id;
const read = (columns, name, row) => columns.find((column) => column.name === name).at(row);

// an example in short: its texts, and the values that the rule reads
function makeCard(row, columns, now, findMarks) {
  const rule = report.rules[now.rule];
  const isNear = rule && findSide(now.rule, row) === 2;
  const lacks = isNear ? rule.conditions.filter((_, i) => !isIn(mask(rule.masks[i]), row)) : [];
  const address = rule ? linkList(now, { row }) : link({ rule: report.rules.length - 1, row });
  const texts = columns.filter((column) => isText(column) && column.at(row) !== null);
  const values = columns.filter((column) => !isText(column) && rule?.columns.includes(column.name));
  const mark = (column) => markText(column.at(row), findMarks(column, row), own(report.openings, column.name));
  return make("article", { class: "excerpt", "data-item": "" },
    small(make("a", { href: address, "data-open": "" }, make("code", {}, showValue(read(columns, report.id, row)))),
      report.models.length ? ` ${read(columns, report.model, row)}` : null,
      ` ${nameOutcome(row)}`, lacks.map((text) => `; not: ${text}`)),
    makeTerms([
      ...texts.map((column) => [column.name, mark(column)]),
      ...values.map((column) => [column.name, make("mark", {}, showValue(column.at(row)))]),
    ], "terms"));
}

function makeSide(side, rows, columns, now, findMarks) {
  const [key, title] = [SIDES[side], report.rules[now.rule].sides[side]];
  const alone = now.side === side;
  const [start, size] = alone ? [now.start, PAGE] : [0, FIRST];
  const end = Math.min(start + size, rows.length);
  const page = (label, from) =>
    make("a", { href: linkList(now, { start: from || null }), "data-key": label[0].toLowerCase() }, label);
  const whole = (...label) => make("a", { href: linkList(now, { side: key }) }, label);
  return make("section", { "aria-labelledby": `side-${key}` },
    make("h2", { id: `side-${key}` }, alone ? title : whole(title),
      make("span", { class: "count" }, ` ${count(rows.length)}`)),
    rows.slice(start, end).map((row) => makeCard(row, columns, now, findMarks)),
    rows.length ? null : small("None."),
    make("p", { class: "pages small" },
      alone && rows.length ? `${start + 1}–${end} of ${count(rows.length)}` : null,
      alone && start > 0 ? page("Previous", Math.max(0, start - PAGE)) : null,
      alone && end < rows.length ? page("Next", end) : null,
      !alone && end < rows.length ? whole(`All ${count(rows.length)}`) : null));
}

// f goes to the tab after the current one
function makeTabs(now) {
  const titles = report.rules[now.rule].sides;
  const tabs = [[undefined, "All sides"], ...SIDES.map((key, side) => [key, titles[side]])];
  const here = now.side + 1;
  return make("nav", { class: "tabs", "aria-label": "Sides of the rule" }, tabs.map(([side, title], place) => {
    const state = { "aria-current": place === here ? "true" : null, "data-key": place === (here + 1) % 4 ? "f" : null };
    return make("a", { href: linkList(now, { side }), ...state }, title);
  }));
}

function makeFilters(now, columns) {
  const chips = now.filters.map((filter) => {
    const [name, value] = [columns[filter.place].name, filter.rest.map(showValue).join(" to ")];
    const rest = now.filters.filter((other) => other !== filter).map((other) => other.text);
    const state = { href: linkList(now, { filter: rest }), "aria-label": `Drop the filter ${name} ${value}` };
    return make("a", { class: "chip", ...state }, `${name} = ${value} ×`);
  });
  const values = make("div", { class: "values" });
  const choose = async (event) => {
    const column = await readColumn(Number(event.target.value));
    values.replaceChildren(...listValues(now, columns, column));
  };
  const options = columns.map((column, value) => (isText(column) ? null : make("option", { value }, column.name)));
  const box = { type: "search", id: "words", "data-key": "/", value: now.words, oninput: search };
  return make("div", { class: "filters", role: "search" },
    make("label", {}, "Search ", make("input", box)),
    make("details", {}, make("summary", {}, "Filter by a column"),
      make("select", { "aria-label": "Column", onchange: choose },
        make("option", { disabled: "", selected: "" }, "Choose a column"), options), values),
    chips);
}

// what a column may be filtered by: the ends of its numbers, or its most frequent values
function listValues(now, columns, column) {
  if (column.kind === "number") {
    const [low, high] = [Math.min, Math.max].map((pick, place) => {
      const values = column.values.filter((one) => one !== null);
      const value = values.reduce((end, one) => pick(end, one), values[0]);
      return make("input", { type: "number", step: "any", value, "aria-label": place ? "At most" : "At least" });
    });
    const go = () => (location.hash = linkFilter(now, column, Number(low.value), Number(high.value)));
    return [low, " to ", high, make("button", { type: "button", onclick: go }, "Filter")];
  }
  const sizes = new Map();
  for (const row of select(now, columns).flat()) sizes.set(column.at(row), (sizes.get(column.at(row)) ?? 0) + 1);
  const most = [...sizes].sort((one, other) => other[1] - one[1]).slice(0, PAGE);
  return most.map(([value, size]) =>
    make("a", { class: "chip", href: linkFilter(now, column, value) }, `${showValue(value)} `,
      make("span", { class: "count" }, count(size))));
}

let waiting;
function search(event) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    history.replaceState(null, "", linkList(readState(), { words: event.target.value }));
    render();
  }, 150);
}

async function showRule(now) {
  const rule = report.rules[now.rule];
  const columns = await readColumns((column, place) =>
    now.row !== null || isOfCards(column) || rule.columns.includes(column.name) ||
    now.filters.some((filter) => filter.place === place));
  const findMarks = await readMarks(now.rule);
  const sides = select(now, columns);
  if (now.row !== null) return showExample(now, columns, findMarks, sides);
  const step = (by, key, label) => {
    const place = (now.rule + by + report.rules.length) % report.rules.length;
    return make("a", { href: link({ rule: place }), "data-key": key }, label);
  };
  const visible = now.side < 0 ? [0, 1, 2] : [now.side];
  const sizes = rule.sides.map((title, side) => `${title}: ${sides[side].length}. `);
  return [
    make("p", { class: "small steps" }, step(-1, "[", "Previous rule"), step(1, "]", "Next rule")),
    make("h2", { class: "head" }, rule.name),
    make("p", {}, rule.sentence),
    rule.blocks.length
      ? make("details", {}, make("summary", {}, "Numbers, other wordings"), makeBlocks(rule.blocks))
      : null,
    rule.unscored ? small(`${count(rule.unscored)} inside were not scored.`) : null,
    makeFilters(now, columns),
    make("p", { class: "hushed", role: "status" }, sizes),
    makeTabs(now),
    make("div", { class: visible.length > 1 ? "sides" : "sides alone" },
      visible.map((side) => makeSide(side, sides[side], columns, now, findMarks))),
  ];
}

function showExample(now, columns, findMarks, sides) {
  const { row } = now;
  const rule = report.rules[now.rule];
  const side = findSide(now.rule, row);
  const list = side < 0 ? [] : sides[side];
  const place = list.indexOf(row);
  const step = (to, key, label) =>
    (to === undefined ? null : make("a", { href: linkList(now, { row: to }), "data-key": key }, label));
  const id = read(columns, report.id, row);
  const others = Array.from(losses.keys()).filter((other) => other !== row && read(columns, report.id, other) === id);
  const texts = columns.filter((column) => isText(column) && column.at(row) !== null);
  const setText = (column) => make("section", { class: "text" }, make("h3", {}, column.name),
    make("pre", { tabindex: 0, "aria-label": column.name }, markText(column.at(row), findMarks(column, row))));
  const setValue = (column) => {
    const value = column.at(row);
    const shown = rule.columns.includes(column.name) ? make("mark", {}, showValue(value)) : showValue(value);
    const address = linkFilter(now, column, ...(column.kind === "number" && value !== null ? [value, value] : [value]));
    return [column.name, make("a", { href: address, title: "Only examples with this value" }, shown)];
  };
  return [
    make("p", { class: "small steps" }, make("a", { href: linkList(now, {}), "data-key": "u" }, "Back to the list"),
      step(list[place - 1], "k", "Previous"), place < 0 ? null : step(list[place + 1], "j", "Next")),
    make("h2", { class: "head" }, make("code", {}, showValue(id))),
    make("p", {}, `${rule.name}: ${rule.sides[side]?.toLowerCase() ?? "not on it"}; ${nameOutcome(row)}`),
    texts.map(setText),
    makeTerms(columns.filter((column) => !isText(column) && column.name !== report.id).map(setValue), "remarks values"),
    others.length ? make("h3", {}, "The same example elsewhere") : null,
    make("div", { class: "sides" }, others.slice(0, PAGE).map((other) => makeCard(other, columns, now, findMarks))),
  ];
}

// ---------------------------------------------------------------------------- two models compared

// of each unit that a model was scored on, its mean loss and its first row
function averageUnits(units, models, model) {
  const sums = new Map();
  for (let row = 0; row < report.rows; row++) {
    if (models.at(row) !== model || losses[row] === null) continue;
    const sum = sums.get(units.at(row)) ?? { total: 0, size: 0, row };
    sums.set(units.at(row), { total: sum.total + losses[row], size: sum.size + 1, row: sum.row });
  }
  return sums;
}

// units that both fail, only the second, only the first, neither
function sortUnits(first, second) {
  const fails = ({ total, size }) => total / size >= 0.5;
  const cells = [[], [], [], []];
  for (const [unit, one] of first) {
    const other = second.get(unit);
    if (other) cells[(fails(one) ? 0 : 1) + (fails(other) ? 0 : 2)].push(unit);
  }
  return cells;
}

// rules by how much more often only the second fails inside than elsewhere
function contrastRules(cells, first) {
  // a rule that is listed for several models is one rule here
  const places = new Map(report.rules.slice(0, -1).map((rule, place) => [rule.sql, place]).reverse());
  const rows = [...places.values()].map((place) => {
    const conditions = report.rules[place].masks.map(mask);
    const isInside = (unit) => conditions.every((one) => isIn(one, first.get(unit).row));
    const [inside, all] = [cells[1], cells.flat()].map((units) => units.filter(isInside).length);
    const rest = [cells[1].length - inside, cells.flat().length - all];
    return { place, inside: [inside, all], rest, lift: inside / all - rest[0] / rest[1] };
  });
  return rows.filter(({ lift }) => !Number.isNaN(lift)).sort((one, other) => other.lift - one.lift);
}

async function showComparison(now) {
  const columns = await readColumns(isOfCards);
  const units = await readRows("units");
  const models = columns.find((column) => column.name === report.model);
  const [a, b] = [report.models[now.first], report.models[now.second]];
  const [first, second] = [a, b].map((model) => averageUnits(units, models, model));
  const cells = sortUnits(first, second);
  const total = cells.flat().length;
  const names = ["both fail", `only ${b} fails`, `only ${a} fails`, "neither fails"];
  const here = { compare: 1, first: now.first, second: now.second };
  const choose = (name) => {
    const change = (event) => (location.hash = link({ ...here, [name]: event.target.value }));
    const options = report.models.map((model, value) =>
      make("option", { value, selected: value === now[name] ? "" : null }, model));
    return make("select", { "aria-label": name, onchange: change }, options);
  };
  const share = ([part, whole]) => `${count(part)} of ${count(whole)} (${((100 * part) / whole).toFixed(0)}%)`;
  const table = {
    caption: `Rules by how often only ${b} fails`,
    columns: [{ head: "Rule" }, { head: "Inside", kind: "number" }, { head: "Elsewhere", kind: "number" }],
    rows: contrastRules(cells, first).slice(0, PAGE).map(({ place, inside, rest }) =>
      [make("a", { href: link({ rule: place }) }, report.rules[place].name), share(inside), share(rest)]),
  };
  return [
    make("h2", { class: "head" }, "Two models on the same examples"),
    make("p", {}, choose("first"), " against ", choose("second")),
    make("p", {}, `Both were scored on ${count(total)} ${report.unit}s. A model fails on one where half or more is wrong.`),
    make("div", { class: "cells" }, cells.map((cell, place) => {
      const state = { "data-cell": place, "aria-current": place === now.cell ? "true" : null };
      return make("a", { href: link({ ...here, cell: place }), ...state },
        make("strong", {}, count(cell.length)), ` ${names[place]}`);
    })),
    make("p", { class: "notice", role: "note" }, "These are counts, and nothing was tested: with many rules some " +
      "stand out by chance. groundfault audit --compare tests what changed."),
    makeTable(table),
    make("h3", {}, `${names[now.cell]}: ${count(cells[now.cell].length)}`),
    cells[now.cell].slice(0, PAGE).map((unit) => make("div", { class: "sides pair" },
      [first, second].map((model) => makeCard(model.get(unit).row, columns, now, () => [])))),
  ];
}

// ------------------------------------------------------------------------------ screens and keys

function showModes() {
  const sections = report.sections.map(({ title, blocks }) =>
    make("section", {}, make("h2", {}, title), makeBlocks(blocks)));
  const part = "Examples here are of the discovery part alone; no held-out row is in this file.";
  return [
    make("section", { class: "answer", "aria-labelledby": "answer-head" },
      make("h2", { id: "answer-head" }, report.verdict),
      makeTerms(report.facts, "facts"),
      report.part === "discovery" ? make("p", { class: "notice", role: "note" }, part) : null,
      makeBlocks(report.modes),
      make("p", {}, make("a", { href: link({ rule: report.rules.length - 1 }) }, "All examples"))),
    ...sections,
  ];
}

const KEYS = [
  ["j", "next example"], ["k", "previous example"], ["Enter", "open it"], ["u", "back to the list"],
  ["f", "next side: fails inside, passes inside, near misses, all"],
  ["[", "previous rule"], ["]", "next rule"], ["n", "next page"], ["p", "previous page"],
  ["/", "search; Escape leaves the box"],
  ["m", "modes"], ["e", "examples"], ["c", "comparison"], ["r", "record"], ["?", "this list"],
];

const head = (title, ...content) => [make("h2", { class: "head" }, title), ...content.flat()];
const showKeys = () => head("Keys", makeTerms(KEYS.map(([key, what]) => [make("kbd", {}, key), what])));
const showRecord = () => head("Record", makeBlocks(report.record));

const SCREENS = [
  ["modes", "Modes", {}, "m"], ["rule", "Examples", { rule: 0 }, "e"],
  ["compare", "Comparison", { compare: 1 }, "c"], ["record", "Record", { record: 1 }, "r"],
];
const SHOW = { modes: showModes, rule: showRule, compare: showComparison, record: showRecord, keys: showKeys };

function makeMenu(now) {
  const screens = SCREENS.filter(([name]) => name !== "compare" || report.models.length > 1);
  return screens.map(([name, title, to, key]) => {
    const state = { "data-key": key, "aria-current": name === now.screen ? "page" : null };
    return make("a", { href: link(to), ...state }, title);
  });
}

let turn = 0;
let shown; // the address that is on the page
async function render() {
  const [now, address] = [readState(), location.hash];
  const mine = (turn += 1);
  const content = await SHOW[now.screen](now);
  if (mine !== turn) return; // a later state came first
  const box = element("words");
  const typing = box && document.activeElement === box;
  element("screens").replaceChildren(...makeMenu(now));
  element("main").replaceChildren(...content.flat(3).filter(Boolean));
  element("main").removeAttribute("aria-busy");
  document.title = `${element("main").querySelector("h2").textContent} · ${report.title}`;
  // who types goes on typing, in a box that is new
  if (typing && element("words")) {
    element("words").value = box.value;
    element("words").focus();
    element("words").setSelectionRange(box.selectionStart, box.selectionEnd);
  }
  shown = address;
  pressEarly();
}

async function start() {
  report = await readJson("report");
  const [bytes, { at }] = await Promise.all([readBytes("masks"), readRows("losses")]);
  masks = bytes;
  losses = Array.from({ length: report.rows }, (_, row) => at(row));
  element("title").textContent = report.title;
  isBehind = () => shown !== location.hash;
  addEventListener("hashchange", () => render().then(() => scrollTo(0, 0)));
  await render();
}

start().catch((error) => {
  const text = `This file cannot be read: ${error.message}. It needs a browser of 2023 or later.`;
  element("main").replaceChildren(make("p", { class: "notice", role: "alert" }, text));
});
