// The one file: its screens, and where its rules, marks and searches come from.

const link = (content) => `#${writeQuery(content)}`;
const go = (address) => (location.hash = address);
const listKey = () => ({ rule: report.rules.length - 1 });

function readState() {
  const query = new URLSearchParams(location.hash.slice(1));
  const now = readList(query);
  const place = query.has("rule") ? Number.parseInt(query.get("rule"), 10) : -1;
  const rule = report.rules[place];
  const other = ["compare", "record", "keys"].find((name) => query.has(name));
  return { ...now, rule, key: { rule: place }, screen: rule ? "rule" : other ?? "modes" };
}

// a rule that is listed for several models is one rule here
const listRules = async () =>
  [...new Map(report.rules.slice(0, -1).map((rule) => [rule.sql, rule]).reverse()).values()];

// places that a rule marks, by column and place of a text: starts and lengths
const readSpans = remember(async (rule) => {
  const spans = new Map();
  if (!element(`spans-${rule}`)) return spans;
  let [head, bytes, start] = await readHead(`spans-${rule}`);
  for (const [name, size, widths] of head) {
    const [steps, starts, lengths] = widths.map((width) => {
      start += size * width;
      return readNumbers(bytes, start - size * width, size, width);
    });
    const places = new Map();
    for (let i = 0, place = 0; i < size; i++) {
      place += steps[i];
      if (!places.has(place)) places.set(place, []);
      places.get(place).push(starts[i], lengths[i]);
    }
    spans.set(name, places);
  }
  return spans;
});

// texts in lower case, made at the first search
const lower = remember((values) => values.map((text) => (text ?? "").toLowerCase()));

// what is there to say of some rows beside their values, all of which are at hand
async function prepare(now, columns, rows) {
  const spans = now.rule ? await readSpans(now.key.rule) : new Map();
  const id = columns.find((column) => column.name === report.id);
  const isSame = (other) => !rows.includes(other) && id.at(other) === id.at(rows[0]);
  const same = now.row === null || !rows.includes(now.row) ? [] : Array.from(losses.keys()).filter(isSame);
  return { same, findMarks: ({ name, place }, row) => spans.get(name)?.get(place(row)) };
}

async function findTests(now, columns) {
  if (!now.words) return [];
  const wanted = now.words.toLowerCase();
  const texts = columns.filter((column) => column.kind === "text" || column.name === report.id);
  const marks = texts.map((column) => lower(column.values).map((text) => text.includes(wanted)));
  return [(row) => texts.some((column, i) => marks[i][column.place(row)])];
}

let waiting;
function search(words) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    history.replaceState(null, "", linkList(readState(), { words }));
    render();
  }, 150);
}

function makeHead({ rule, key }) {
  const step = (by, letter, label) => {
    const place = (key.rule + by + report.rules.length) % report.rules.length;
    return make("a", { href: link({ rule: place }), "data-key": letter }, label);
  };
  return [
    make("p", { class: "small steps" }, step(-1, "[", "Previous rule"), step(1, "]", "Next rule")),
    makeTitle(rule.name),
    make("p", {}, rule.sentence),
    rule.blocks.length
      ? make("details", {}, make("summary", {}, "Numbers, other wordings"), makeBlocks(rule.blocks))
      : null,
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
  ["f", "next side: fails inside, passes inside, near misses, all"], ["1 2 3 4", "both models fail, only the second, only the first, neither"],
  ["[", "previous rule"], ["]", "next rule"], ["n", "next page"], ["p", "previous page"],
  ["/", "search; Escape leaves the box"],
  ["m", "modes"], ["e", "examples"], ["c", "comparison"], ["r", "record"], ["?", "this list"],
];

const head = (title, ...content) => [makeTitle(title), ...content.flat()];
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
  report.rules.forEach((rule, place) => (rule.key = { rule: place }));
  masks = await readBytes("masks");
  await readLosses();
  element("title").textContent = report.title;
  isBehind = () => shown !== location.hash;
  addEventListener("hashchange", () => render().then(() => scrollTo(0, 0)));
  await render();
}

start().catch((error) => {
  const text = `This file cannot be read: ${error.message}. It needs a browser of 2023 or later.`;
  element("main").replaceChildren(make("p", { class: "notice", role: "alert" }, text));
});
