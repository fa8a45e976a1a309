// Reading the file: everything that came from data is in compressed blocks, which become text alone.

const element = (id) => document.getElementById(id);

async function readBlock(id) {
  const code = atob(element(id).textContent);
  const bytes = new Uint8Array(code.length);
  for (let i = 0; i < code.length; i++) bytes[i] = code.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

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
let masks; // one after the other, a bit each row, the lowest first; rules name them by their places
let losses; // of each row; null where it was not scored

// columns and marks are read when they are first needed
const readColumn = remember(async (place) => ({ ...report.columns[place], ...(await readRows(`column-${place}`)) }));

// the columns that a screen needs; of the others their names and kinds alone
const readColumns = (needs) =>
  Promise.all(report.columns.map((column, place) => (needs(column, place) ? readColumn(place) : column)));

const isOfCards = ({ name, kind }) => kind === "text" || name === report.id || name === report.model;

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

// a function that finds what a rule marks in the text of a row
async function readMarks(rule) {
  const spans = await readSpans(rule);
  return ({ name, place }, row) => spans.get(name)?.get(place(row));
}

function mask(place) {
  const size = Math.ceil(report.rows / 8);
  return masks.subarray(place * size, (place + 1) * size);
}

const isIn = (bytes, row) => (bytes[row >> 3] >> (row & 7)) & 1;

// the rows of each side of a rule as masks: failing, passing, near
const sortRows = remember((place) => {
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
  return sides;
});

// the side of a rule that a row is on; -1 for none
const findSide = (place, row) => sortRows(place).findIndex((side) => isIn(side, row));

// texts in lower case, made at the first search
const lower = remember((column) => column.values.map((text) => (text ?? "").toLowerCase()));
