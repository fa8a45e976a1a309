// Rows on the server's pages: what explorer.js shows is asked for block by block.

const go = (address) => quietly(open(address));
const link = (content) => `${home}/${"compare" in content ? "compare" : "examples"}?${writeQuery(content)}`;
const listKey = () => ({});
const search = (words, now) => go(linkList(now, { words }));

// the words of a refusal are an error's
async function load(path, query = {}) {
  const answer = await ask(`${home}/data/${path}?${writeQuery(query)}`);
  if (!answer.ok) throw new Error(read(await answer.text()).body.textContent.trim());
  return answer;
}

readText = async (id) => (await load(`block/${id}`)).text();

const unpackBytes = async (text) => new Uint8Array(await (await unpack(text)).arrayBuffer());

// the last rules that were looked at, with their masks
const rules = new Map();
async function findRule(key) {
  const name = String(writeQuery(key));
  if (!rules.has(name)) {
    const rule = await (await load("rule", key)).json();
    if (rules.size > 8) rules.delete(rules.keys().next().value);
    rules.set(name, { ...rule, key, pool: await unpackBytes(rule.pool) });
  }
  return rules.get(name);
}

const listRules = remember(async () => {
  const { rules: some, pool } = await (await load("rules")).json();
  const bytes = await unpackBytes(pool);
  return some.map((rule) => ({ ...rule, pool: bytes }));
});

// conditions in SQL, and words in any text, are the server's to find
async function findTests({ key, where, words }) {
  if (!where.length && !words) return [];
  const bytes = await unpackBytes(await (await load("mask", { ...key, where, words })).text());
  return [(row) => isIn(bytes, row)];
}

const MOST = 200; // columns of an example: wide tables of embeddings have thousands

// values of rows that are shown, and what the rule marks in them
async function prepare(now, columns, rows, isWhole) {
  if (!rows.length) return { same: [], findMarks: () => null };
  const some = columns.slice(0, MOST);
  const places = some.map(({ name }) => report.columns.findIndex((one) => one.name === name));
  const query = { ...now.key, row: rows, column: places, whole: isWhole ? 1 : null };
  const { values, marks, same } = await (await load("values", query)).json();
  some.forEach((column, i) => {
    column.shown ??= new Map();
    rows.forEach((row, k) => column.shown.set(row, values[i][k]));
    column.at = (row) => column.shown.get(row) ?? null;
  });
  return { same, findMarks: ({ name }, row) => own(own(marks, name), rows.indexOf(row)) };
}

fill = async () => {
  const place = element("explorer");
  if (!place) return;
  try {
    if (!report) {
      report = { ...(await (await load("report")).json()), served: true };
      await readLosses();
    }
    const query = new URLSearchParams(location.search);
    const now = readList(query);
    now.key = Object.fromEntries([...query].filter(([name]) => ["mode", "finding", "rule"].includes(name)));
    const isRule = place.dataset.screen === "rule";
    if (isRule) now.rule = await findRule(now.key);
    const content = await (isRule ? showRule : showComparison)(now);
    if (!place.isConnected) return; // a later page was asked for
    place.replaceChildren(...content.flat(4).filter(Boolean));
    document.title = `${document.querySelector("h1").textContent} · groundfault`;
  } catch (error) {
    if (error instanceof TypeError && !report) throw error;
    place.replaceChildren(make("p", { class: "notice bad", role: "alert" }, error.message));
  }
};
