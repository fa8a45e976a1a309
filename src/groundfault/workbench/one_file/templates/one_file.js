"use strict";
// One report and its examples. Everything that came from data is read from the compressed blocks of
// this file and set as text; the address after # holds the state, so back and forward work.

// ------------------------------------------------------------------------------ reading the file

const element = (id) => document.getElementById(id);

async function readBlock(id) {
  const code = atob(element(id).textContent);
  const bytes = new Uint8Array(code.length);
  for (let i = 0; i < code.length; i++) bytes[i] = code.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

const readJson = async (id) => (await readBlock(id)).json();
const readBytes = async (id) => new Uint8Array(await (await readBlock(id)).arrayBuffer());

let report; // everything but the rows
let masks; // one after the other, a bit each row, the lowest first; rules name them by their places
let losses;
const reading = new Map(); // columns, which are read when they are first needed

function readColumn(place) {
  if (!reading.has(place)) {
    reading.set(place, readJson(`column-${place}`).then((content) => {
      const { levels, codes } = content;
      const at = levels ? (row) => (codes[row] === null ? null : levels[codes[row]]) : (row) => content[row];
      return { ...report.columns[place], at, levels, codes, values: levels ? null : content };
    }));
  }
  return reading.get(place);
}

const readColumns = () => Promise.all(report.columns.map((_, place) => readColumn(place)));

const mask = (place) => masks.subarray(place * Math.ceil(report.rows / 8), (place + 1) * Math.ceil(report.rows / 8));
const isIn = (bytes, row) => (bytes[row >> 3] >> (row & 7)) & 1;

const sorted = new Map();

// the rows of each side of a rule as masks: failing, passing, near
function sortRows(place) {
  if (!sorted.has(place)) {
    const rule = report.rules[place];
    const [here, wrong, conditions] = [mask(rule.here), mask(rule.wrong), rule.masks.map(mask)];
    const sides = [0, 1, 2].map(() => new Uint8Array(here.length));
    for (let i = 0; i < here.length; i++) {
      let [all, near] = [0xff, 0]; // of the conditions so far: all hold, all but one do
      for (const holds of conditions) [all, near] = [all & holds[i], (near & holds[i]) | (all & ~holds[i])];
      sides[0][i] = all & here[i] & wrong[i];
      sides[1][i] = all & here[i] & ~wrong[i];
      sides[2][i] = near & here[i];
    }
    sorted.set(place, sides);
  }
  return sorted.get(place);
}

// the side of a rule that a row is on; -1 for none
const findSide = (place, row) => sortRows(place).findIndex((side) => isIn(side, row));

// ------------------------------------------------------------------------------- making elements

// strings become text nodes: there is no way from here to markup
function make(tag, settings, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(settings ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return node;
}

const makeLine = (line) =>
  (Array.isArray(line) ? line : [line]).map((part) => {
    if (typeof part === "string") return part;
    return "code" in part ? make("code", {}, part.code) : make("mark", {}, part.mark);
  });

function makeStatement(one) {
  const place = report.rules.findIndex((rule) => one.anchor && rule.anchor === one.anchor);
  const name = makeLine(one.name);
  return make("li", { "data-item": "" },
    make("h3", {}, place < 0 ? name : make("a", { href: link({ rule: place }) }, name)),
    make("p", {}, one.sentence),
    one.bar ? makeBar(one.bar) : null,
    one.remarks.map((remark) => make("p", { class: "small" }, makeLine(remark))));
}

function makeBar([inside, outside]) {
  const bar = make("div", { class: "bar", "aria-hidden": "true" }, make("span"), make("span"));
  bar.style.setProperty("--inside", inside);
  bar.style.setProperty("--outside", outside);
  return bar;
}

function makeTable(table) {
  const cell = (tag, text, column) =>
    make(tag, { class: column.kind === "number" ? "number" : null, scope: tag === "th" ? "col" : null },
      ["code", "under"].includes(column.kind) ? make("code", {}, text) : text);
  return make("div", { class: "scroll", role: "region", "aria-label": table.caption, tabindex: 0 },
    make("table", {}, make("caption", {}, table.caption),
      make("thead", {}, make("tr", {}, table.columns.map((column) => cell("th", column.head, column)))),
      make("tbody", {}, table.rows.map((row) => make("tr", {}, row.map((text, i) => cell("td", text, table.columns[i])))))),
    table.note ? make("p", { class: "small" }, table.note) : null);
}

const BLOCKS = {
  paragraph: (b) => make("p", { class: b.style || null, role: b.style === "notice" ? "note" : null }, makeLine(b.line)),
  bullets: (b) => make("ul", { class: "hints" }, b.lines.map((line) => make("li", {}, makeLine(line)))),
  statements: (b) => [
    make("ul", { class: "lead" }, b.items.slice(0, b.open).map(makeStatement)),
    b.items.length > b.open
      ? make("details", {}, make("summary", {}, `${b.items.length - b.open} ${b.more}`),
          make("ul", { class: "lead" }, b.items.slice(b.open).map(makeStatement)))
      : null,
  ],
  remarks: (b) => make("dl", { class: "remarks" }, b.items.map(([label, line]) =>
    make("div", {}, make("dt", {}, label), make("dd", {}, makeLine(line))))),
  table: (b) => (b.rows.length ? makeTable(b) : null),
  columns: (b) => make("div", { class: "columns" }, b.tables.filter((t) => t.rows.length).map(makeTable)),
  entry: (b) => make("article", {}, make("h3", {}, makeLine(b.title)), makeBlocks(b.blocks)),
  fold: (b) => make("details", {}, make("summary", {}, makeLine(b.summary)), makeBlocks(b.blocks)),
};

const makeBlocks = (blocks) => blocks.flatMap((block) => BLOCKS[block.block]?.(block) ?? []);

// ------------------------------------------------------------------------- the state, after the #

const SIDES = [["failing", "Fails inside"], ["passing", "Passes inside"], ["near", "Near misses"]];
const PAGE = 50;
const FIRST = 12;

function state() {
  const query = new URLSearchParams(location.hash.slice(1));
  const number = (name, size) => {
    const value = Number.parseInt(query.get(name) ?? "", 10);
    return value >= 0 && value < size ? value : null;
  };
  const filters = query.getAll("filter").flatMap((text) => {
    try {
      const [name, ...rest] = JSON.parse(text);
      const place = report.columns.findIndex((column) => column.name === name);
      return place < 0 || !rest.length ? [] : [{ place, text, rest }];
    } catch {
      return []; // an address that somebody edited
    }
  });
  const rule = number("rule", report.rules.length);
  const screen = rule !== null ? "rule" : ["compare", "record", "keys"].find((name) => query.has(name)) ?? "modes";
  return {
    screen, rule, filters, words: query.get("words") ?? "", row: number("row", report.rows),
    side: SIDES.findIndex(([name]) => name === query.get("side")), start: number("start", report.rows) ?? 0,
    first: number("first", report.models.length) ?? 0, second: number("second", report.models.length) ?? 1,
    cell: number("cell", 4) ?? 1,
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

const ruleState = (now, change) => ({
  rule: now.rule, side: SIDES[now.side]?.[0], words: now.words, filter: now.filters.map((f) => f.text), ...change,
});

// -------------------------------------------------------------------------------------- examples

function test({ rest }, column) {
  if (rest.length === 2) return (row) => column.at(row) !== null && column.at(row) >= rest[0] && column.at(row) <= rest[1];
  return column.levels
    ? ((code) => (row) => column.codes[row] === code)(rest[0] === null ? null : column.levels.indexOf(rest[0]))
    : (row) => column.at(row) === rest[0];
}

const lower = new Map(); // texts in lower case, made at the first search

function findWords(columns, words) {
  const wanted = words.toLowerCase();
  const texts = columns.filter((column) => column.kind === "text" || column.name === report.id);
  for (const column of texts) {
    if (!lower.has(column.name)) {
      const size = (column.values ?? column.codes).length;
      lower.set(column.name, Array.from({ length: size }, (_, row) => (column.at(row) ?? "").toLowerCase()));
    }
  }
  return (row) => texts.some((column) => lower.get(column.name)[row].includes(wanted));
}

// the rows of each side that pass all filters; typical ones, and those nearest to a threshold, first
function select(now, columns) {
  const tests = now.filters.map((filter) => test(filter, columns[filter.place]));
  if (now.words) tests.push(findWords(columns, now.words));
  const sides = SIDES.map(() => []);
  const take = (row) => {
    const side = findSide(now.rule, row);
    if (side >= 0 && tests.every((passes) => passes(row))) sides[side].push(row);
  };
  const first = new Set(report.rules[now.rule].first);
  first.forEach(take);
  for (let row = 0; row < report.rows; row++) if (!first.has(row)) take(row);
  return sides;
}

function markText(text, spans, start = 0) {
  const parts = [start ? "[…] " : ""];
  let place = start;
  for (let i = 0; i < (spans ?? []).length; i += 2) {
    const [from, to] = [spans[i], spans[i] + spans[i + 1]];
    if (from < place) continue;
    parts.push(text.slice(place, from), make("mark", {}, text.slice(from, to)));
    place = to;
  }
  return [...parts, text.slice(place)].filter((part) => part !== "");
}

const showValue = (value) => (value === null ? "–" : typeof value === "number" ? value.toLocaleString("en") : value);

function nameOutcome(row) {
  const loss = losses[row];
  return loss === null ? "not scored" : loss === 0 ? "right" : loss === 1 ? "wrong" : `loss ${loss.toPrecision(2)}`;
}

function makeCard(row, columns, now, spans, heading = true) {
  const rule = report.rules[now.rule];
  const texts = columns.filter((column) => column.kind === "text" && column.name !== report.id && column.at(row) !== null);
  const read = columns.filter((column) => column.kind !== "text" && rule?.columns.includes(column.name));
  const name = (place) => columns.find((column) => column.name === place)?.at(row);
  const target = now.screen === "rule" ? ruleState(now, { row }) : { rule: report.rules.length - 1, row };
  const isNear = rule && findSide(now.rule, row) === 2;
  const missing = isNear ? rule.conditions.filter((_, place) => !isIn(mask(rule.masks[place]), row)) : [];
  return make("article", { class: "excerpt", "data-item": "" },
    make("p", { class: "small" }, heading ? make("a", { href: link(target), "data-open": "" }, make("code", {}, showValue(name(report.id)))) : null,
      report.models.length ? ` ${name(report.model)}` : null, ` ${nameOutcome(row)}`, missing.map((text) => `; not: ${text}`)),
    make("dl", {},
      texts.map((column) => [make("dt", {}, column.name),
        make("dd", {}, markText(column.at(row), spans[column.name]?.[row], report.openings[column.name] ?? 0))]),
      read.map((column) => [make("dt", {}, column.name), make("dd", {}, make("mark", {}, showValue(column.at(row))))])));
}

function makeSide(side, rows, columns, now, spans) {
  const [key, title] = SIDES[side];
  const alone = now.side === side;
  const [start, size] = alone ? [now.start, PAGE] : [0, FIRST];
  const to = Math.min(start + size, rows.length);
  const page = (label, from) => make("a", { href: link(ruleState(now, { side: key, start: from || null })), "data-key": label[0].toLowerCase() }, label);
  return make("section", { "aria-labelledby": `side-${key}` },
    make("h2", { id: `side-${key}` }, alone ? title : make("a", { href: link(ruleState(now, { side: key })) }, title),
      make("span", { class: "count" }, ` ${rows.length.toLocaleString("en")}`)),
    rows.slice(start, to).map((row) => makeCard(row, columns, now, spans)),
    rows.length ? null : make("p", { class: "small" }, "None."),
    make("p", { class: "pages small" },
      alone && rows.length ? `${start + 1}–${to} of ${rows.length.toLocaleString("en")} ` : null,
      alone && start > 0 ? page("Previous", Math.max(0, start - PAGE)) : null, " ",
      alone && to < rows.length ? page("Next", to) : null,
      !alone && to < rows.length ? make("a", { href: link(ruleState(now, { side: key })) }, `All ${rows.length.toLocaleString("en")}`) : null));
}

// f goes to the tab after the current one
function makeTabs(now) {
  const tabs = [[-1, undefined, "All sides"], ...SIDES.map(([key, title], side) => [side, key, title])];
  const next = tabs[(tabs.findIndex(([side]) => side === now.side) + 1) % tabs.length];
  return make("nav", { class: "tabs", "aria-label": "Sides of the rule" }, tabs.map((tab) =>
    make("a", { href: link(ruleState(now, { side: tab[1] })), "aria-current": tab[0] === now.side ? "true" : null, "data-key": tab === next ? "f" : null }, tab[2])));
}

function makeFilters(now, columns) {
  const chips = now.filters.map((filter) => {
    const [name, value] = [report.columns[filter.place].name, filter.rest.map(showValue).join(" to ")];
    const rest = now.filters.filter((other) => other !== filter).map((other) => other.text);
    return make("a", { class: "chip", href: link(ruleState(now, { filter: rest })), "aria-label": `Drop the filter ${name} ${value}` }, `${name} = ${value} ×`);
  });
  const values = make("div", { class: "values" });
  const choose = (event) => values.replaceChildren(...listValues(now, columns[event.target.value]));
  const names = columns.flatMap((column, place) => (column.kind === "text" ? [] : make("option", { value: place }, column.name)));
  return make("div", { class: "filters", role: "search" },
    make("label", {}, "Search ", make("input", { type: "search", id: "words", "data-key": "/", value: now.words, oninput: search })),
    make("details", {}, make("summary", {}, "Filter by a column"),
      make("select", { "aria-label": "Column", onchange: choose }, make("option", { disabled: "", selected: "" }, "Choose a column"), names), values),
    chips);
}

function listValues(now, column) {
  const add = (...rest) => link(ruleState(now, { filter: [...now.filters.map((f) => f.text), JSON.stringify([column.name, ...rest])] }));
  if (column.kind === "number") {
    const ends = column.values.reduce(([low, high], v) => (v === null ? [low, high] : [Math.min(low, v), Math.max(high, v)]), [Infinity, -Infinity]);
    const [low, high] = ends.map((end, i) => make("input", { type: "number", step: "any", value: end, "aria-label": i ? "At most" : "At least" }));
    const go = () => { location.hash = add(Number(low.value), Number(high.value)).slice(1); };
    return [low, " to ", high, make("button", { type: "button", onclick: go }, "Filter")];
  }
  const counts = new Map();
  const rows = select(now, shown).flat();
  rows.forEach((row) => counts.set(column.at(row), (counts.get(column.at(row)) ?? 0) + 1));
  const most = [...counts].sort((one, other) => other[1] - one[1]).slice(0, PAGE);
  return most.map(([value, count]) => make("a", { class: "chip", href: add(value) }, `${showValue(value)} `, make("span", { class: "count" }, count.toLocaleString("en"))));
}

let waiting;
function search(event) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    history.replaceState(null, "", link(ruleState(state(), { words: event.target.value })));
    render();
  }, 150);
}

let shown = []; // columns of the screen

async function showRule(now) {
  const columns = (shown = await readColumns());
  const rule = report.rules[now.rule];
  const spans = await readSpans(now.rule);
  const sides = select(now, columns);
  if (now.row !== null) return showExample(now, columns, spans, sides);
  const visible = now.side < 0 ? SIDES.map((_, side) => side) : [now.side];
  const around = (step) => link({ rule: (now.rule + step + report.rules.length) % report.rules.length });
  return [
    make("p", { class: "small steps" }, make("a", { href: around(-1), "data-key": "[" }, "Previous rule"), " ", make("a", { href: around(1), "data-key": "]" }, "Next rule")),
    make("h2", { class: "head" }, makeLine(rule.kind === "finding" ? { code: rule.name } : rule.name)),
    make("p", {}, rule.sentence),
    rule.blocks.length ? make("details", {}, make("summary", {}, "Numbers, other wordings"), makeBlocks(rule.blocks)) : null,
    rule.unscored ? make("p", { class: "small" }, `${rule.unscored.toLocaleString("en")} inside were not scored.`) : null,
    makeFilters(now, columns),
    make("p", { class: "hushed", role: "status" }, SIDES.map(([, title], side) => `${title}: ${sides[side].length}. `).join("")),
    makeTabs(now),
    make("div", { class: visible.length > 1 ? "sides" : "sides alone" }, visible.map((side) => makeSide(side, sides[side], columns, now, spans))),
  ];
}

const readingSpans = new Map();
function readSpans(rule) {
  if (rule === null || !element(`spans-${rule}`)) return {};
  if (!readingSpans.has(rule)) readingSpans.set(rule, readJson(`spans-${rule}`));
  return readingSpans.get(rule);
}

function showExample(now, columns, spans, sides) {
  const list = sides.find((rows) => rows.includes(now.row)) ?? [now.row];
  const place = list.indexOf(now.row);
  const step = (by, label, key) => (list[place + by] === undefined ? null : make("a", { href: link(ruleState(now, { row: list[place + by] })), "data-key": key }, label));
  const id = columns.find((column) => column.name === report.id);
  const others = report.models.length || id ? Array.from({ length: report.rows }, (_, row) => row).filter((row) => row !== now.row && id.at(row) === id.at(now.row)) : [];
  const isText = (column) => column.kind === "text" && column.name !== report.id;
  const filter = (column) => link(ruleState(now, { row: null, filter: [...now.filters.map((f) => f.text), JSON.stringify([column.name, ...(column.kind === "number" ? [column.at(now.row), column.at(now.row)] : [column.at(now.row)])])] }));
  const marks = report.rules[now.rule].columns;
  return [
    make("p", { class: "small steps" }, make("a", { href: link(ruleState(now, {})), "data-key": "u" }, "Back to the list"), " ", step(-1, "Previous", "k"), " ", step(1, "Next", "j")),
    make("h2", { class: "head" }, make("code", {}, showValue(id.at(now.row)))),
    make("p", {}, report.rules[now.rule].name, `: ${SIDES[sides.findIndex((rows) => rows.includes(now.row))]?.[1].toLowerCase() ?? "not on it"}; ${nameOutcome(now.row)}`),
    columns.filter((column) => isText(column) && column.at(now.row) !== null).map((column) =>
      make("section", { class: "text" }, make("h3", {}, column.name), make("pre", { tabindex: 0, "aria-label": column.name }, markText(column.at(now.row), spans[column.name]?.[now.row])))),
    make("dl", { class: "remarks values" }, columns.filter((column) => !isText(column)).map((column) => make("div", {},
      make("dt", {}, column.name),
      make("dd", {}, make("a", { href: filter(column), title: "Only examples with this value" }, marks.includes(column.name) ? make("mark", {}, showValue(column.at(now.row))) : showValue(column.at(now.row))))))),
    others.length ? [make("h3", {}, "The same example elsewhere"), make("div", { class: "sides" }, others.slice(0, PAGE).map((row) => makeCard(row, columns, now, spans)))] : null,
  ];
}

// ---------------------------------------------------------------------------- two models compared

const CELLS = ["both fail", "only the second fails", "only the first fails", "neither fails"];

// mean loss of each unit for one model; undefined where it was not scored
function averageUnits(units, models, model) {
  const sums = new Map();
  for (let row = 0; row < report.rows; row++) {
    if (models.at(row) !== model || losses[row] === null) continue;
    const sum = sums.get(units[row]) ?? { total: 0, count: 0, row };
    sum.total += losses[row];
    sum.count += 1;
    sums.set(units[row], sum);
  }
  return sums;
}

async function showComparison(now) {
  const columns = (shown = await readColumns());
  const units = await readJson("units");
  const models = columns.find((column) => column.name === report.model);
  const [a, b] = [report.models[now.first], report.models[now.second]];
  const [first, second] = [a, b].map((model) => averageUnits(units, models, model));
  const fails = (one) => one.total / one.count >= 0.5;
  const cells = CELLS.map(() => []);
  for (const [unit, one] of first) {
    const other = second.get(unit);
    if (other) cells[fails(one) ? (fails(other) ? 0 : 2) : fails(other) ? 1 : 3].push(unit);
  }
  const total = cells.flat().length;
  const say = (cell) => CELLS[cell].replace("the first fails", `${a} fails`).replace("the second fails", `${b} fails`);
  const choose = (name, value) => make("select", { "aria-label": name, onchange: (event) => { location.hash = link({ compare: 1, first: now.first, second: now.second, [name]: event.target.value }).slice(1); } },
    report.models.map((model, place) => make("option", { value: place, selected: place === value ? "" : null }, model)));
  const within = (place, unit) => report.rules[place].masks.every((one) => isIn(mask(one), first.get(unit).row));
  // a rule that is listed for several models is one rule here
  const places = [...new Map(report.rules.slice(0, -1).map((rule, place) => [rule.sql, place]).reverse()).values()];
  const rules = places.map((place) => {
    const rule = report.rules[place];
    const [here, all] = [cells[1], cells.flat()].map((some) => some.filter((unit) => within(place, unit)).length);
    const rest = [cells[1].length - here, total - all];
    return { rule, place, here, all, rest, lift: here / all - rest[0] / rest[1] };
  }).filter((row) => row.all > 0 && row.rest[1] > 0).sort((one, other) => other.lift - one.lift);
  const rate = (count, of) => `${count.toLocaleString("en")} of ${of.toLocaleString("en")} (${(100 * count / of).toFixed(1)}%)`;
  return [
    make("h2", { class: "head" }, "Two models on the same examples"),
    make("p", {}, choose("first", now.first), " against ", choose("second", now.second)),
    make("p", {}, `Both were scored on ${total.toLocaleString("en")} ${report.unit}s. An ${report.unit === "example" ? "example" : "entry"} fails where its mean loss is at least one half.`),
    make("div", { class: "cells" }, cells.map((cell, place) => make("a", { href: link({ compare: 1, first: now.first, second: now.second, cell: place }), "data-cell": place, "aria-current": place === now.cell ? "true" : null },
      make("strong", {}, cell.length.toLocaleString("en")), ` ${say(place)}`))),
    make("p", { class: "notice", role: "note" }, "These counts say where two models differ on these rows; they were not tested. groundfault audit --compare does that."),
    makeTable({ caption: `Rules by how often only ${b} fails`, note: "", columns: [{ head: "Rule" }, { head: "Inside", kind: "number" }, { head: "Elsewhere", kind: "number" }],
      rows: rules.slice(0, PAGE).map((row) => [make("a", { href: link({ rule: row.place }) }, row.rule.name), rate(row.here, row.all), rate(...row.rest)]) }),
    make("h3", {}, `${say(now.cell)}: ${cells[now.cell].length.toLocaleString("en")}`),
    cells[now.cell].slice(0, PAGE).map((unit) => make("div", { class: "sides pair" }, [first, second].map((model) => makeCard(model.get(unit).row, columns, now, {})))),
  ];
}

// ------------------------------------------------------------------------------ screens and keys

function showModes() {
  return [
    make("section", { class: "answer", "aria-labelledby": "answer-head" },
      make("h2", { id: "answer-head" }, report.verdict),
      make("dl", { class: "facts" }, report.facts.map(([label, text]) => make("div", {}, make("dt", {}, label), make("dd", {}, text)))),
      report.part === "discovery" ? make("p", { class: "notice", role: "note" }, "Examples here are of the discovery part alone; no held-out row is in this file.") : null,
      makeBlocks(report.modes),
      make("p", {}, make("a", { href: link({ rule: report.rules.length - 1 }) }, "All examples"))),
    report.sections.map((section) => make("section", {}, make("h2", {}, section.title), makeBlocks(section.blocks))),
  ];
}

const SCREENS = [
  ["modes", "Modes", {}, "m"],
  ["rule", "Examples", { rule: 0 }, "e"],
  ["compare", "Comparison", { compare: 1 }, "c"],
  ["record", "Record", { record: 1 }, "r"],
];
const SHOW = { modes: showModes, rule: showRule, compare: showComparison, keys: showKeys, record: () => [make("h2", { class: "head" }, "Record"), ...makeBlocks(report.record)] };

let drawing = 0;
async function render() {
  const now = state();
  const turn = (drawing += 1);
  const content = await SHOW[now.screen](now);
  if (turn !== drawing) return; // a later state came first
  element("screens").replaceChildren(...SCREENS.filter(([name]) => name !== "compare" || report.models.length > 1).map(([name, title, to, key]) =>
    make("a", { href: link(to), "aria-current": name === now.screen ? "page" : null, "data-key": key }, title)));
  const box = element("words");
  const typing = box && document.activeElement === box;
  element("main").replaceChildren(...content.flat(2).filter(Boolean));
  // who types goes on typing, in a box that is new
  if (typing && element("words")) {
    element("words").value = box.value;
    element("words").focus();
    element("words").setSelectionRange(box.selectionStart, box.selectionEnd);
  }
  element("main").removeAttribute("aria-busy");
  document.title = `${element("main").querySelector("h2")?.textContent ?? ""} · ${report.title}`;
}

const KEYS = [
  ["j", "next example"], ["k", "previous example"], ["Enter", "open it"], ["u", "back to the list"],
  ["f", "next side: fails inside, passes inside, near misses, all"], ["[", "previous rule"], ["]", "next rule"],
  ["n", "next page"], ["p", "previous page"], ["/", "search; Escape leaves the box"],
  ["m", "modes"], ["e", "examples"], ["c", "comparison"], ["r", "record"], ["?", "this list"],
];

function showKeys() {
  const rows = KEYS.map(([key, what]) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)));
  return [make("h2", { class: "head" }, "Keys"), make("dl", { class: "remarks" }, rows)];
}

async function start() {
  [report, masks, losses] = await Promise.all([readJson("report"), readBytes("masks"), readJson("losses")]);
  element("title").textContent = report.title;
  addEventListener("hashchange", () => render().then(() => scrollTo(0, 0)));
  await render();
}

start().catch((error) => element("main").replaceChildren(make("p", { class: "notice", role: "alert" }, `This file cannot be read: ${error.message}. It needs a browser of 2023 or later.`)));
