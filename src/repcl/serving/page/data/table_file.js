/** Turns a file or pasted rows into columns and rows, whatever its format and encoding. */

import { OpenQuote, parseCsv } from "./csv.js";

/**
 * @typedef {{line: number, cells: Record<string, string>, problem?: string}} Row
 * @typedef {{columns: string[], rows: Row[], note: string}} Table
 */

/** A file that cannot be read, with what to do about it. */
export class UnreadableFile extends Error {}

/**
 * @param {File} file
 * @param {number} mostBytes
 * @returns {Promise<Table>}
 */
export async function readFile(file, mostBytes) {
  if (file.size > mostBytes) {
    throw new UnreadableFile(
      `${file.name} is larger than this service takes at once (${Math.floor(mostBytes / 1e6)} MB): divide it, or use repcl learn.`,
    );
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (isBinary(bytes)) {
    throw new UnreadableFile(`${file.name} is not a text file. Save it as CSV or JSONL and drop it again.`);
  }
  const { text, note } = decode(bytes);
  return { ...readTable(text), note };
}

/**
 * @param {string} text CSV with a header, JSON lines, or a JSON list
 * @returns {Table}
 */
export function readTable(text) {
  const start = text.trimStart()[0];
  const table = start === "{" || start === "[" ? readJson(text) : readCsv(text);
  if (!table.rows.length)
    throw new UnreadableFile("There are no rows: the first line names the columns, the rows follow.");
  return table;
}

/** @param {string} text */
function readCsv(text) {
  const [header, ...records] = csvRecords(text);
  if (!header) return { columns: [], rows: [], note: "" };
  const columns = distinct(header.cells);
  const rows = records.map(({ line, cells }) => ({
    line,
    cells: Object.fromEntries(columns.map((name, index) => [name, cells[index] ?? ""])),
    problem:
      cells.length > columns.length ? `has ${cells.length} cells, the header ${columns.length}` : undefined,
  }));
  return { columns, rows, note: "" };
}

/**
 * Names for all columns: those without one, or with one that came before, are numbered.
 * @param {string[]} names
 */
function distinct(names) {
  return names.map((name, index) =>
    name && names.indexOf(name) === index ? name : `${name || "column"} ${index + 1}`,
  );
}

/** @param {string} text */
function csvRecords(text) {
  try {
    return parseCsv(text);
  } catch (error) {
    throw error instanceof OpenQuote ? new UnreadableFile(error.message) : error;
  }
}

/** @param {string} text */
function readJson(text) {
  const whole = text.trimStart().startsWith("[") ? parsedOrNull(text) : null;
  const rows = Array.isArray(whole)
    ? whole.map((value, index) => jsonRow(value, index + 1))
    : text
        .split(/\r?\n/)
        .flatMap((line, index) => (line.trim() ? [jsonRow(parsedOrNull(line), index + 1)] : []));
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row.cells)))];
  return { columns, rows, note: "" };
}

/**
 * @param {unknown} value
 * @param {number} line
 * @returns {Row}
 */
function jsonRow(value, line) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { line, cells: {}, problem: "is not a JSON object" };
  }
  const cells = Object.entries(value).map(([name, cell]) => [
    name,
    typeof cell === "string" ? cell : cell === null ? "" : JSON.stringify(cell),
  ]);
  return { line, cells: Object.fromEntries(cells) };
}

/** @param {string} text */
function parsedOrNull(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** @param {Uint8Array} bytes */
function isBinary(bytes) {
  const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  return !isUtf16 && bytes.subarray(0, 4096).includes(0);
}

/**
 * @param {Uint8Array} bytes
 * @returns {{text: string, note: string}}
 */
function decode(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe)
    return { text: new TextDecoder("utf-16le").decode(bytes), note: "" };
  if (bytes[0] === 0xfe && bytes[1] === 0xff)
    return { text: new TextDecoder("utf-16be").decode(bytes), note: "" };
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), note: "" };
  } catch {
    const note = "The file is not UTF-8 and was read as Windows-1252: look at accents before you teach it.";
    return { text: new TextDecoder("windows-1252").decode(bytes), note };
  }
}
