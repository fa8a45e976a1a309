// Several models: the answers of each to an example side by side, and two of them compared.

// the rows of examples by their models: an example a row, a model a column, the same prompt once
async function listAnswers(rows) {
  const [ids, models] = await Promise.all([report.id, report.model].map((name) =>
    readColumn(report.columns.findIndex((column) => column.name === name))));
  const answers = new Map(rows.map((row) => [ids.at(row), new Map(report.models.map((model) => [model, []]))]));
  for (let row = 0; row < report.rows; row++) answers.get(ids.at(row))?.get(models.at(row))?.push(row);
  return [...answers.values()];
}

async function makeAnswers(now, columns, examples) {
  const rows = examples.map((answers) => [...answers.values()].flat());
  const texts = columns.filter(isText);
  const found = await prepare({ ...now, row: null }, texts, rows.flat());
  const isShared = (column) => rows.every((some) => some.every((row) => column.at(row) === column.at(some[0])));
  const [shared, theirs] = [texts.filter(isShared), texts.filter((column) => !isShared(column))];
  const say = (row, some) => some.filter((column) => column.at(row) !== null)
    .map((column) => make("p", {}, some.length > 1 ? small(column.name) : null, markCell(column, row, now, found)));
  const cell = (some) => make("td", {}, some.map((row) => [
    make("a", { href: linkList(now, { row }), class: `outcome ${nameOutcome(row)}` }, nameOutcome(row)), say(row, theirs)]));
  const body = examples.map((answers, place) => make("tr", { "data-item": "" },
    make("th", { scope: "row" }, say(rows[place][0], shared.length ? shared : texts)), [...answers.values()].map(cell)));
  const head = ["Example", ...report.models].map((name) => make("th", { scope: "col" }, name));
  return make("div", { class: "scroll", role: "region", "aria-label": "Answers of each model", tabindex: 0 },
    make("table", { class: "answers" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)));
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

// rules by how much more often units inside are in a cell than those elsewhere
function contrastRules(rules, cells, cell, first) {
  const rows = cells.map((units) => units.map((unit) => first.get(unit).row));
  const total = rows.flat().length;
  const contrasts = rules.map((rule) => {
    const conditions = rule.masks.map((place) => mask(rule, place));
    const isInside = (row) => conditions.every((one) => isIn(one, row));
    const sizes = rows.map((some) => some.filter(isInside).length);
    const all = sizes.reduce((sum, size) => sum + size, 0);
    const rest = [rows[cell].length - sizes[cell], total - all];
    return { rule, inside: [sizes[cell], all], rest, lift: sizes[cell] / all - rest[0] / rest[1] };
  });
  return contrasts.filter(({ lift }) => !Number.isNaN(lift)).sort((one, other) => other.lift - one.lift);
}

async function showComparison(now) {
  const columns = await readColumns((column) => column.name === report.model || (!report.served && isOfCards(column)));
  const [units, rules] = [await readRows("units"), await listRules()];
  const models = columns.find((column) => column.name === report.model);
  const [a, b] = [report.models[now.first], report.models[now.second]];
  const [first, second] = [a, b].map((model) => averageUnits(units, models, model));
  const cells = sortUnits(first, second);
  const names = ["both fail", `only ${b} fails`, `only ${a} fails`, "neither fails"];
  const here = { compare: 1, first: now.first, second: now.second };
  // both as they are chosen now: the page of the last choice may be on its way
  const change = () => go(link({ ...here, ...Object.fromEntries(choices.map(({ ariaLabel, value }) => [ariaLabel, value])) }));
  const choose = (name) => {
    const options = report.models.map((model, value) =>
      make("option", { value, selected: value === now[name] ? "" : null }, model));
    return make("select", { "aria-label": name, onchange: change }, options);
  };
  const choices = ["first", "second"].map(choose);
  const share = ([part, whole]) => `${count(part)} of ${count(whole)} (${((100 * part) / whole).toFixed(0)}%)`;
  const table = {
    caption: `Rules by how often ${names[now.cell]}`,
    columns: [{ head: "Rule" }, { head: "Inside", kind: "number" }, { head: "Elsewhere", kind: "number" }],
    rows: contrastRules(rules, cells, now.cell, first).slice(0, PAGE).map(({ rule, inside, rest }) =>
      [make("a", { href: link(rule.key), "data-open": "" }, rule.name), share(inside), share(rest)]),
    isList: true,
  };
  const [total, list] = [cells.flat().length, cells[now.cell]];
  const page = list.slice(now.start, now.start + PAGE);
  const pairs = page.map((unit) => [first, second].map((model) => model.get(unit).row));
  const found = await prepare({ key: {} }, columns.filter(isOfCards), pairs.flat());
  const move = (key, label, start) =>
    make("a", { href: link({ ...here, cell: now.cell, start }), "data-key": key }, label);
  return [
    makeTitle(`${b} against ${a}`),
    make("p", {}, choices[0], " against ", choices[1]),
    make("p", {}, `Both were scored on ${count(total)} ${report.unit}s. A model fails on one where half or more is wrong.`),
    make("div", { class: "cells" }, cells.map((cell, place) => {
      const state = { "data-cell": place, "data-key": place + 1, "aria-current": place === now.cell ? "true" : null };
      return make("a", { href: link({ ...here, cell: place }), ...state },
        make("strong", {}, count(cell.length)), ` ${names[place]}`);
    })),
    make("p", { class: "notice", role: "note" }, String(report.pair) === String([now.first, now.second])
      ? "These are counts; what the report tests is on the first page."
      : "These are counts, and nothing was tested: with many rules some stand out by chance. groundfault audit " +
        "--compare tests what changed."),
    makeTable(table),
    make(report.served ? "h2" : "h3", {}, `${names[now.cell]}: ${count(list.length)}`),
    pairs.map((pair) => make("div", { class: "sides pair" },
      pair.map((row) => makeCard(row, columns, now, found)))),
    make("p", { class: "pages small" },
      list.length ? `${count(now.start + 1)}–${count(now.start + page.length)} of ${count(list.length)}` : "None.",
      now.start > 0 ? move("p", "Previous", Math.max(0, now.start - PAGE)) : null,
      now.start + PAGE < list.length ? move("n", "Next", now.start + PAGE) : null),
  ];
}
