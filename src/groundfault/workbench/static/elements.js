// Making elements: strings become text nodes, and there is no way from here to markup.

function make(tag, settings, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
  return node;
}

const count = (number) => number.toLocaleString("en");

const small = (...children) => make("p", { class: "small" }, ...children);

const makeLine = (line) =>
  [line].flat().map((part) => {
    if (typeof part === "string") return part;
    return "code" in part ? make("code", {}, part.code) : make("mark", {}, part.mark);
  });

function makeBar([inside, outside]) {
  const bar = make("div", { class: "bar", "aria-hidden": "true" }, make("span", {}), make("span", {}));
  bar.style.setProperty("--inside", inside);
  bar.style.setProperty("--outside", outside);
  return bar;
}

// a link to the examples of the rule that an anchor of the report stands for, if there is one
function linkRule(anchor, ...content) {
  const place = (report.rules ?? []).findIndex((rule) => anchor && rule.anchor === anchor);
  return place < 0 ? content : make("a", { href: link({ rule: place }) }, content);
}

function makeStatement(one) {
  return make("li", { "data-item": "" },
    make("h3", {}, linkRule(one.anchor, makeLine(one.name))),
    make("p", {}, one.sentence),
    one.bar ? makeBar(one.bar) : null,
    one.remarks.map((remark) => small(makeLine(remark))));
}

// cells are text, or elements that were made here
function makeTable({ caption, columns, rows, note, anchors = [], isList = false }) {
  const set = (tag, scope) => (content, place) => {
    const { kind } = columns[place];
    const isCode = kind === "code" || kind === "under";
    const mark = { "●": " above", "○": " higher" }[String(content).at(-1)] ?? "";
    return make(tag, { scope, class: kind === "number" ? kind + mark : null }, isCode ? make("code", {}, content) : content);
  };
  const head = make("tr", {}, columns.map((column) => column.head).map(set("th", "col")));
  const body = rows.map(([first, ...rest], number) => {
    const row = [linkRule(anchors[number], first), ...rest];
    return make("tr", { "data-item": isList || anchors[number] ? "" : null }, row.map(set("td", null)));
  });
  return [
    make("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: 0 },
      make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, body))),
    note ? small(note) : null,
  ];
}

function makeTerms(pairs, style = "remarks") {
  const rows = pairs.map(([label, ...content]) => make("div", {}, make("dt", {}, label), make("dd", {}, content)));
  return make("dl", { class: style }, rows);
}

function makeStatements({ items, open, more }) {
  const list = (some) => make("ul", { class: "lead" }, some.map(makeStatement));
  const rest = items.slice(open);
  const fold = rest.length ? make("details", {}, make("summary", {}, `${rest.length} ${more}`), list(rest)) : null;
  return [list(items.slice(0, open)), fold];
}

// the blocks of a report, by their kinds
const BLOCKS = {
  paragraph: ({ line, style }) =>
    make("p", { class: style || null, role: style === "notice" ? "note" : null }, makeLine(line)),
  bullets: ({ lines }) => make("ul", { class: "hints" }, lines.map((line) => make("li", {}, makeLine(line)))),
  statements: makeStatements,
  remarks: ({ items }) => makeTerms(items.map(([label, line]) => [label, makeLine(line)])),
  table: (table) => (table.rows.length ? makeTable(table) : null),
  columns: ({ tables }) => make("div", { class: "columns" }, tables.filter((one) => one.rows.length).map(makeTable)),
  entry: ({ title, blocks }) => make("article", {}, make("h3", {}, makeLine(title)), makeBlocks(blocks)),
  fold: ({ summary, blocks }) => make("details", {}, make("summary", {}, makeLine(summary)), makeBlocks(blocks)),
};

const makeBlocks = (blocks) => blocks.map((block) => own(BLOCKS, block.block)?.(block));

// the places of what was searched for in a text: starts and lengths
function findWords(text, words) {
  const [spans, size] = [[], words.length];
  const lower = text.toLowerCase();
  for (let i = lower.indexOf(words); size && i >= 0; i = lower.indexOf(words, i + size)) spans.push(i, size);
  return spans;
}

// a text with marks at some places: starts and lengths
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

const showValue = (value) => (value === null ? "–" : typeof value === "number" ? count(value) : value);

function nameOutcome(row) {
  const loss = losses[row];
  if (loss === null) return "not scored";
  return ["right", "wrong"][loss] ?? `loss ${loss.toPrecision(2)}`;
}
