// Reading rows: everything that came from data is in compressed blocks, which become text alone. The
// one file holds them; a server is asked for each.

const element = (id) => document.getElementById(id);

let readText = async (id) => element(id).textContent;

async function unpack(text) {
  const code = atob(text);
  const bytes = new Uint8Array(code.length);
  for (let i = 0; i < code.length; i++) bytes[i] = code.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

const readBlock = async (id) => unpack(await readText(id));
const readJson = async (id) => (await readBlock(id)).json();
const readBytes = async (id) => new Uint8Array(await (await readBlock(id)).arrayBuffer());

// A block of JSON and, where there is more, after a line break numbers; and where these begin.
async function readHead(id) {
  const bytes = await readBytes(id);
  const end = bytes.indexOf(10);
  const head = JSON.parse(new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end)));
  return [head, bytes, end < 0 ? bytes.length : end + 1];
}

// Numbers of some bytes each, byte by byte: the lowest of all first.
function readNumbers(bytes, start, size, width) {
  const numbers = new Uint32Array(size);
  for (let byte = 0, i = start; byte < width; byte++) {
    for (let k = 0; k < size; k++, i++) numbers[k] |= bytes[i] << (8 * byte);
  }
  return numbers;
}

// A value for each row: where values repeat, numbers say its place among them, and where they are
// names with a number, numbers are all that differs.
async function readRows(id) {
  const [head, bytes, start] = await readHead(id);
  const plain = (values) => ({ values, place: (row) => row, at: (row) => values[row] });
  if (start === bytes.length) return plain(head);
  const numbers = readNumbers(bytes, start, report.rows, (bytes.length - start) / report.rows);
  const { prefix, width } = head;
  if (!Array.isArray(head)) return plain(Array.from(numbers, (n) => prefix + String(n).padStart(width, "0")));
  return { values: head, place: (row) => numbers[row], at: (row) => head[numbers[row]] };
}

// a function that computes a thing once for each place
function remember(compute) {
  const memory = new Map();
  return (place) => {
    if (!memory.has(place)) memory.set(place, compute(place));
    return memory.get(place);
  };
}

// data may name a property "constructor", which every object has
const own = (object, name) => (object && Object.hasOwn(object, name) ? object[name] : undefined);

let report; // everything but the rows
let masks; // one after the other, a bit each row, the lowest first; rules name them by their places,
// unless they bring their own
let losses; // of each row; null where it was not scored

async function readLosses() {
  const { at } = await readRows("losses");
  losses = Array.from({ length: report.rows }, (_, row) => at(row));
}

// columns are read when they are first needed
const readColumn = remember(async (place) => ({ ...report.columns[place], ...(await readRows(`column-${place}`)) }));

// the columns that a screen needs; of the others their names and kinds alone
const readColumns = (needs) => Promise.all(report.columns.map(async (column, place) =>
  ({ ...(needs(column, place) ? await readColumn(place) : column) })));

const isOfCards = ({ name, kind }) => kind === "text" || name === report.id || name === report.model;

function mask(rule, place) {
  const size = Math.ceil(report.rows / 8);
  return (rule.pool ?? masks).subarray(place * size, (place + 1) * size);
}

const isIn = (bytes, row) => (bytes[row >> 3] >> (row & 7)) & 1;

// the rows of each side of a rule as masks: failing, passing, near, inside and not scored
const sortRows = remember((rule) => {
  const [here, wrong, model] = [rule.here, rule.wrong, rule.model].map((place) => mask(rule, place));
  const conditions = rule.masks.map((place) => mask(rule, place));
  const sides = [0, 1, 2, 3].map(() => new Uint8Array(here.length));
  for (let i = 0; i < here.length; i++) {
    let [all, near] = [0xff, 0]; // of the conditions so far: all hold, all but one do
    for (const holds of conditions) [all, near] = [all & holds[i], (near & holds[i]) | (all & ~holds[i])];
    sides[0][i] = all & here[i] & wrong[i];
    sides[1][i] = all & here[i] & ~wrong[i];
    sides[2][i] = near & here[i];
    sides[3][i] = all & model[i] & ~here[i];
  }
  return sides;
});

// the side of a rule that a row is on; -1 for none
const findSide = (rule, row) => sortRows(rule).findIndex((side) => isIn(side, row));
