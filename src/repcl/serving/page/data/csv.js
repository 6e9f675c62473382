/** Reads and writes comma-separated values: quotes, line breaks within them, semicolons and tabs. */

/** @typedef {{line: number, cells: string[]}} Record Where it begins, from 1, and what it holds. */

const SEPARATORS = [",", ";", "\t"];
const FORMULA = /^[=+\-@\t\r]/;

/** A quote that is opened and never closed. */
export class OpenQuote extends Error {
  /** @param {number} line */
  constructor(line) {
    super(
      `In the row of line ${line} a quote is opened and never closed: add the closing quote, or double the quote to mean itself.`,
    );
  }
}

/**
 * @param {string} text
 * @param {string} [separator] Guessed from the first record where it is not given.
 * @returns {Record[]}
 */
export function parseCsv(text, separator = guessSeparator(text)) {
  const records = [];
  let at = 0;
  let line = 1;
  while (at < text.length) {
    const read = readRecord(text, at, line, separator);
    if (read.cells.some((cell) => cell !== "")) records.push({ line, cells: read.cells });
    at = read.end;
    line += read.lines;
  }
  return records;
}

/**
 * The separator that divides the first record into most cells.
 * @param {string} text
 */
export function guessSeparator(text) {
  let best = ",";
  let most = 1;
  for (const separator of SEPARATORS) {
    const { cells } = readRecord(text, 0, 1, separator);
    if (cells.length > most) [best, most] = [separator, cells.length];
  }
  return best;
}

/**
 * @param {string} text
 * @param {number} start
 * @param {number} line
 * @param {string} separator
 * @returns {{cells: string[], end: number, lines: number}}
 */
function readRecord(text, start, line, separator) {
  const cells = [];
  let at = start;
  for (;;) {
    const cell = text[at] === '"' ? readQuoted(text, at, line, separator) : readPlain(text, at, separator);
    cells.push(cell.value);
    at = cell.end;
    if (text[at] !== separator) break;
    at += 1;
  }
  if (text[at] === "\r" && text[at + 1] === "\n") at += 1;
  at += 1;
  return { cells, end: at, lines: text.slice(start, at).split(/\r\n|\r|\n/).length - 1 };
}

/**
 * @param {string} text
 * @param {number} start
 * @param {string} separator
 */
function readPlain(text, start, separator) {
  let end = start;
  while (end < text.length && text[end] !== separator && text[end] !== "\n" && text[end] !== "\r") end += 1;
  return { value: text.slice(start, end).trim(), end };
}

/**
 * @param {string} text
 * @param {number} start Where the quote is opened.
 * @param {number} line Where the record begins.
 * @param {string} separator
 */
function readQuoted(text, start, line, separator) {
  let value = "";
  let at = start + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) throw new OpenQuote(line);
    value += text.slice(at, quote);
    at = quote + 1;
    if (text[at] !== '"') break;
    value += '"';
    at += 1;
  }
  const { end } = readPlain(text, at, separator);
  return { value: value + text.slice(at, end).trimEnd(), end };
}

/**
 * @param {(string | number)[][]} rows
 * @returns {string}
 */
export function writeCsv(rows) {
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/**
 * A text that a spreadsheet would take for a formula gets a quote in front.
 * @param {string | number} value
 */
function cell(value) {
  if (typeof value === "number") return String(value);
  const harmless = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/**
 * Let the browser save a file.
 * @param {string} name
 * @param {string} text
 */
export function download(name, text) {
  const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
