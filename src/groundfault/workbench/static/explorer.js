// Lists of examples by a rule, one example, and two models compared. The address holds the state, so
// back and forward work, and a link says it all. The one file and the server's pages differ in how an
// address is written (link), and in where rules, tests of rows and texts come from.

const SIDES = ["failing", "passing", "near", "unscored"];
const PAGE = 50;
const FIRST = 12; // of a side, where all sides are shown
const ROWS = 200; // that a server answers with at once

function readFilter(text) {
  try {
    const [name, ...rest] = JSON.parse(text);
    const place = report.columns.findIndex((column) => column.name === name);
    return place < 0 || !rest.length ? [] : [{ place, text, rest }];
  } catch {
    return []; // an address that somebody edited
  }
}

function readList(query) {
  const number = (name, size, otherwise = null) => {
    const value = Number.parseInt(query.get(name) ?? "", 10);
    return value >= 0 && value < size ? value : otherwise;
  };
  return {
    row: number("row", report.rows),
    side: SIDES.indexOf(query.get("side")),
    start: number("start", report.rows, 0),
    words: query.get("words") ?? "",
    where: query.getAll("where"),
    filters: query.getAll("filter").flatMap(readFilter),
    sort: query.get("sort") ?? "",
    beside: query.get("beside") && report.models.length ? 1 : null,
    first: number("first", report.models.length, report.pair[0] ?? 0),
    second: number("second", report.models.length, report.pair[1] ?? 1),
    cell: number("cell", 4, 1),
  };
}

// an address: what is null is left out, and filters are a list
function writeQuery(content) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(content)) {
    if (Array.isArray(value)) value.forEach((one) => query.append(name, one));
    else if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  return query;
}

// the address of the same list of examples, with a change; it begins at its first row
function linkList(now, change) {
  const filter = now.filters.map((one) => one.text);
  const { words, where, sort, beside } = now;
  return link({ ...now.key, side: SIDES[now.side], words, where, filter, sort, beside, ...change });
}

// A server counts what fails under a filter, so there it is a rule; of a model it is none.
function linkFilter(now, column, ...rest) {
  if (report.served && column.name !== report.model) {
    return linkList(now, { where: [...new Set([...now.where, writeCondition(column, rest)])] });
  }
  const filter = [...now.filters.map((one) => one.text), JSON.stringify([column.name, ...rest])];
  return linkList(now, { filter });
}

function writeCondition({ name, kind, bare }, [low, high]) {
  const column = `"${name.replaceAll('"', '""')}"`;
  if (low === null) return `${column} IS NULL`;
  if (high !== undefined && high !== low) return `${column} BETWEEN ${low} AND ${high}`;
  return `${column} = ${bare || kind === "number" ? low : `'${low.replaceAll("'", "''")}'`}`;
}

// -------------------------------------------------------------------------------------- examples

function makeTest({ rest }, column) {
  if (column.kind === "number" && rest.length === 2) {
    return (row) => column.at(row) !== null && column.at(row) >= rest[0] && column.at(row) <= rest[1];
  }
  return (row) => column.at(row) === rest[0];
}

const isSortedBy = ({ name }, sort) => sort === name || sort === `-${name}`;

// what is missing comes last
function sortBy({ name, at }, sort) {
  const sign = sort === name ? 1 : -1;
  return (one, other) => {
    const [a, b] = [at(one), at(other)];
    if (a === null || b === null) return (a === null) - (b === null);
    return a < b ? -sign : a > b ? sign : 0;
  };
}

// the rows of each side that pass all tests; typical ones, and those nearest to a threshold, first
function select(now, columns, tests) {
  const { first } = now.rule;
  const early = new Set(first);
  const every = [...now.filters.map((filter) => makeTest(filter, columns[filter.place])), ...tests];
  const column = columns.find((one) => isSortedBy(one, now.sort));
  return sortRows(now.rule).map((bytes) => {
    const rows = first.filter((row) => isIn(bytes, row));
    bytes.forEach((byte, i) => {
      for (let bit = 0; byte >> bit; bit++) {
        if ((byte >> bit) & 1 && !early.has(8 * i + bit)) rows.push(8 * i + bit);
      }
    });
    const passing = rows.filter((row) => every.every((passes) => passes(row)));
    return column?.at ? passing.sort(sortBy(column, now.sort)) : passing;
  });
}

const isText = (column) => column.kind === "text" && column.name !== report.id;
const readCell = (columns, name, row) => columns.find((column) => column.name === name).at(row);

const markCell = (column, row, now, found, start) => {
  const [text, spans] = [column.at(row), found.findMarks(column, row)];
  return markText(text, spans ?? (now.words ? findWords(text, now.words.toLowerCase()) : null), start);
};

// an example in short: its texts, and the values that the rule reads
function makeCard(row, columns, now, found) {
  const { rule } = now;
  const isNear = rule && findSide(rule, row) === 2;
  const lacks = isNear ? rule.conditions.filter((_, i) => !isIn(mask(rule, rule.masks[i]), row)) : [];
  const by = own(rule?.missed, row);
  const address = rule ? linkList(now, { row }) : link({ ...listKey(), row });
  const texts = columns.filter((column) => isText(column) && column.at(row) !== null);
  const values = columns.filter((column) => !isText(column) && rule?.columns.includes(column.name));
  const mark = (column) => markCell(column, row, now, found, own(report.openings, column.name));
  return make("article", { class: "excerpt", "data-item": "" },
    small(make("a", { href: address, "data-open": "" }, make("code", {}, showValue(readCell(columns, report.id, row)))),
      report.models.length ? ` ${readCell(columns, report.model, row)}` : null,
      ` ${nameOutcome(row)}`, lacks.map((text) => `; not: ${text}${by ? `, missed by ${by}` : ""}`)),
    makeTerms([
      ...texts.map((column) => [column.name, mark(column)]),
      ...values.map((column) => [column.name, make("mark", {}, showValue(column.at(row)))]),
    ], "terms"));
}

const listTitles = (rule) => [...rule.sides, ...(rule.unscored ? ["Not scored"] : [])];

function makeSide(side, list, shown, columns, now, found) {
  const [key, title] = [SIDES[side], listTitles(now.rule)[side]];
  const alone = now.side === side;
  const [start, end] = [alone ? now.start : 0, (alone ? now.start : 0) + shown.length];
  const page = (label, from) =>
    make("a", { href: linkList(now, { start: from || null }), "data-key": label[0].toLowerCase() }, label);
  const whole = (...label) => make("a", { href: linkList(now, { side: key }) }, label);
  return make("section", { "aria-labelledby": `side-${key}` },
    make("h2", { id: `side-${key}` }, alone ? title : whole(title),
      make("span", { class: "count" }, ` ${count(list.length)}`)),
    shown.map((row) => makeCard(row, columns, now, found)),
    list.length ? null : small("None."),
    make("p", { class: "pages small" },
      alone && list.length ? `${count(start + 1)}–${count(end)} of ${count(list.length)}` : null,
      alone && start > 0 ? page("Previous", Math.max(0, start - PAGE)) : null,
      alone && end < list.length ? page("Next", end) : null,
      !alone && end < list.length ? whole(`All ${count(list.length)}`) : null));
}

// f goes to the tab after the current one
function makeTabs(now) {
  const titles = listTitles(now.rule);
  const tabs = [[undefined, "All sides"], ...titles.map((title, side) => [SIDES[side], title])];
  const here = now.side + 1;
  const turn = { href: linkList(now, { beside: now.beside ? null : 1 }), "data-key": "b" };
  return make("nav", { class: "tabs", "aria-label": "Sides of the rule" }, tabs.map(([side, title], place) => {
    const isNext = place === (here + 1) % tabs.length;
    const state = { "aria-current": place === here ? "true" : null, "data-key": isNext ? "f" : null };
    return make("a", { href: linkList(now, { side }), ...state }, title);
  }), report.models.length ? make("a", turn, now.beside ? "One answer a row" : "Models side by side") : null);
}

function makeFilters(now, columns, rows) {
  const chip = (text, label, change) =>
    make("a", { class: "chip", href: linkList(now, change), "aria-label": `Drop the filter ${label}` }, `${text} ×`);
  const chips = now.filters.map((filter) => {
    const [name, value] = [columns[filter.place].name, filter.rest.map(showValue).join(" to ")];
    const rest = now.filters.filter((other) => other !== filter).map((other) => other.text);
    return chip(`${name} = ${value}`, `${name} ${value}`, { filter: rest });
  });
  chips.push(...now.where.map((condition) =>
    chip(condition, condition, { where: now.where.filter((other) => other !== condition) })));
  const values = make("div", { class: "values" });
  const choose = async (event) => {
    values.replaceChildren(...listValues(now, await readColumn(Number(event.target.value)), rows));
  };
  const options = columns.map((column, value) => (isText(column) ? null : make("option", { value }, column.name)));
  const box = { type: "search", id: "words", "data-key": "/", value: now.words };
  box[report.served ? "onchange" : "oninput"] = (event) => search(event.target.value, now);
  const add = (event) => go(linkList(now, { where: [...now.where, event.target.value] }));
  const condition = { id: "where", "data-key": "w", onchange: add, placeholder: "one more condition, in SQL" };
  const isOfModel = ({ place }) => columns[place].name === report.model;
  const chosen = now.filters.find(isOfModel)?.rest[0] ?? "";
  const chooseModel = ({ target: { value } }) => {
    const others = now.filters.filter((one) => !isOfModel(one)).map((one) => one.text);
    go(linkList(now, { filter: value ? [...others, JSON.stringify([report.model, value])] : others }));
  };
  const order = columns.flatMap(({ name, kind }) => (kind === "text" ? [] : [[name, `${name} ↑`], [`-${name}`, `${name} ↓`]]));
  const sort = (event) => go(linkList(now, { sort: event.target.value }));
  return make("div", { class: "filters", role: "search" },
    make("label", {}, "Search ", make("input", box)),
    report.models.length ? make("label", {}, "Model ", make("select", { onchange: chooseModel, "data-key": "m" },
      ["", ...report.models].map((model) => make("option", { value: model, selected: model === chosen ? "" : null },
        model || "all")))) : null,
    report.served ? make("label", {}, "Filter ", make("input", condition)) : null,
    make("label", {}, "Order ", make("select", { onchange: sort }, [["", "as it is"], ...order].map(([value, text]) =>
      make("option", { value, selected: value === now.sort ? "" : null }, text)))),
    make("details", {}, make("summary", {}, "Filter by a column"),
      make("select", { "aria-label": "Column", onchange: choose },
        make("option", { disabled: "", selected: "" }, "Choose a column"), options), values),
    chips);
}

// what a column may be filtered by: the ends of its numbers, or its most frequent values
function listValues(now, column, rows) {
  if (column.kind === "number") {
    const [low, high] = [Math.min, Math.max].map((pick, place) => {
      const values = column.values.filter((one) => one !== null);
      const value = values.reduce((end, one) => pick(end, one), values[0]);
      return make("input", { type: "number", step: "any", value, "aria-label": place ? "At most" : "At least" });
    });
    const filter = () => go(linkFilter(now, column, Number(low.value), Number(high.value)));
    return [low, " to ", high, make("button", { type: "button", onclick: filter }, "Filter")];
  }
  const sizes = new Map();
  for (const row of rows) sizes.set(column.at(row), (sizes.get(column.at(row)) ?? 0) + 1);
  const most = [...sizes].sort((one, other) => other[1] - one[1]).slice(0, PAGE);
  return most.map(([value, size]) =>
    make("a", { class: "chip", href: linkFilter(now, column, value) }, `${showValue(value)} `,
      make("span", { class: "count" }, count(size))));
}

async function showRule(now) {
  const { rule } = now;
  const isShown = (column) => now.row !== null || isOfCards(column) || rule.columns.includes(column.name);
  const isTested = (column, place) =>
    isSortedBy(column, now.sort) || now.filters.some((filter) => filter.place === place);
  const columns = await readColumns((column, place) =>
    (isTested(column, place) && column.kind !== "text") || (!report.served && isShown(column)));
  const sides = select(now, columns, await findTests(now, columns));
  if (now.row !== null) return showExample(now, columns, sides);
  if (now.beside) {
    const examples = await listAnswers(now.side < 0 ? [...sides[0], ...sides[1]] : sides[now.side]);
    const most = examples.map((answers) => [...answers.values()].flat().length).reduce((a, b) => Math.max(a, b), 1);
    const size = Math.max(1, Math.min(PAGE, Math.floor(ROWS / most)));
    const page = examples.slice(now.start, now.start + size);
    const move = (label, start) =>
      make("a", { href: linkList(now, { start: start || null }), "data-key": label[0].toLowerCase() }, label);
    return [
      report.served ? null : makeHead(now), makeFilters(now, columns, sides.flat()), makeTabs(now),
      await makeAnswers(now, await readColumns((column) => !report.served && isOfCards(column)), page),
      make("p", { class: "pages small" },
        examples.length ? `${count(now.start + 1)}–${count(now.start + page.length)} of ${count(examples.length)}` : "None.",
        now.start > 0 ? move("Previous", Math.max(0, now.start - size)) : null,
        now.start + size < examples.length ? move("Next", now.start + size) : null),
    ];
  }
  const visible = now.side < 0 ? [0, 1, 2] : [now.side];
  const [start, size] = now.side < 0 ? [0, FIRST] : [now.start, PAGE];
  const pages = visible.map((side) => sides[side].slice(start, start + size));
  const found = await prepare(now, columns.filter(isShown), pages.flat());
  const sizes = listTitles(rule).map((title, side) => `${title}: ${sides[side].length}. `);
  return [
    report.served ? null : makeHead(now),
    rule.unscored ? small(`${count(rule.unscored)} inside were not scored.`) : null,
    makeFilters(now, columns, sides.flat()),
    make("p", { class: "hushed", role: "status" }, sizes),
    makeTabs(now),
    make("div", { class: visible.length > 1 ? "sides" : "sides alone" },
      visible.map((side, i) => makeSide(side, sides[side], pages[i], columns, now, found))),
  ];
}

const makeTitle = (...content) => make(report.served ? "h1" : "h2", { class: "head" }, content);

async function showExample(now, every, sides) {
  const { row, rule } = now;
  const found = await prepare(now, every, [row], true);
  const columns = every.filter((column) => column.at);
  const side = findSide(rule, row);
  const list = side < 0 ? [] : sides[side];
  const place = list.indexOf(row);
  const step = (to, key, label) =>
    (to === undefined ? null : make("a", { href: linkList(now, { row: to }), "data-key": key }, label));
  const texts = columns.filter((column) => isText(column) && column.at(row) !== null);
  const setText = (column) => make("section", { class: "text" }, make("h3", {}, column.name),
    make("pre", { tabindex: 0, "aria-label": column.name }, markCell(column, row, now, found)));
  const setValue = (column) => {
    const value = column.at(row);
    const shown = rule.columns.includes(column.name) ? make("mark", {}, showValue(value)) : showValue(value);
    // a fraction is rounded here, and no rule would find it
    if (report.served && typeof value === "number" && !Number.isInteger(value)) return [column.name, shown];
    const address = linkFilter(now, column, ...(column.kind === "number" && value !== null ? [value, value] : [value]));
    return [column.name, make("a", { href: address, title: "Only examples with this value" }, shown)];
  };
  const content = [
    make("p", { class: "small steps" }, make("a", { href: linkList(now, {}), "data-key": "u" }, "Back to the list"),
      step(list[place - 1], "k", "Previous"), place < 0 ? null : step(list[place + 1], "j", "Next"),
      place < 0 ? null : make("span", {}, `${count(place + 1)} of ${count(list.length)}`)),
    makeTitle(make("code", {}, showValue(readCell(columns, report.id, row)))),
    make("p", {}, `${rule.name}: ${listTitles(rule)[side]?.toLowerCase() ?? "not on it"}; ${nameOutcome(row)}`),
    texts.map(setText),
    makeTerms(columns.filter((column) => !isText(column) && column.name !== report.id).map(setValue), "remarks values"),
  ];
  const heading = (text) => make(report.served ? "h2" : "h3", {}, text);
  if (report.models.length) {
    return [...content, heading("The answers of each model"), await makeAnswers(now, columns, await listAnswers([row]))];
  }
  const others = found.same.slice(0, PAGE);
  const beside = await prepare(now, columns.filter((one) => isOfCards(one) || rule.columns.includes(one.name)), others);
  return [
    ...content,
    others.length ? heading("The same example elsewhere") : null,
    make("div", { class: "sides" }, others.map((other) => makeCard(other, columns, now, beside))),
  ];
}
