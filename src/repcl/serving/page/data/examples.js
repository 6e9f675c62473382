/** From rows to examples: what can be taught, and what is wrong with the rest, row by row. */

import { amount } from "./format.js";

/** @import { Example, Kind, Limits, Model, Span } from "../types.js" */
/** @import { Row } from "./table_file.js" */

/**
 * @typedef {Record<string, string>} Choice Which column holds what: `text`, `label` and the spans of a kind.
 * @typedef {object} Checked
 * @property {number} line
 * @property {string} text
 * @property {string} label
 * @property {string} problem Why it is left out; empty where it is not.
 * @property {Example | null} example
 */

const LABEL_SEPARATOR = "|";

/** @type {Record<Kind, ("head" | "tail" | "trigger")[]>} */
export const SPANS = { sentence: [], relation: ["head", "tail"], event: ["trigger"] };

const USUAL = {
  text: ["text", "texts", "message", "utterance", "sentence", "query", "question", "content", "body"],
  label: ["label", "labels", "class", "intent", "category", "topic", "tag", "relation", "target"],
};

/**
 * A first choice of columns by their usual names, else in their order.
 * @param {string[]} columns
 * @param {Kind} kind
 * @returns {Choice}
 */
export function guessChoice(columns, kind) {
  const byName = (/** @type {string[]} */ names) =>
    columns.find((column) => names.includes(column.trim().toLowerCase()));
  const label = byName(USUAL.label);
  const text = byName(USUAL.text) ?? columns.find((column) => column !== label) ?? "";
  const spans = SPANS[kind].map((name) => [name, byName([name]) ?? ""]);
  return {
    text,
    label: label ?? columns.find((column) => column !== text) ?? "",
    ...Object.fromEntries(spans),
  };
}

/**
 * The labels in a cell: several where the model allows that, with `|` between them.
 * @param {string} cell
 * @param {boolean} isMultilabel
 */
export function labelsOfCell(cell, isMultilabel) {
  const labels = isMultilabel ? cell.split(LABEL_SEPARATOR) : [cell];
  return labels.map((label) => label.trim()).filter(Boolean);
}

/**
 * @param {Row[]} rows
 * @param {Choice} choice
 * @param {Model} model
 * @returns {Checked[]}
 */
export function checkRows(rows, choice, model) {
  /** @type {Map<string, Checked>} */
  const seen = new Map();
  return rows.map((row) => {
    const checked = checkRow(row, choice, model);
    if (checked.example) refuseRepeated(checked, seen, model.multilabel);
    return checked;
  });
}

/**
 * @param {string} label
 * @param {string} pasted One text per line.
 * @param {Model} model
 * @returns {Checked[]}
 */
export function checkLines(label, pasted, model) {
  const rows = pasted
    .split(/\r?\n/)
    .flatMap((text, index) => (text.trim() ? [{ line: index + 1, cells: { text, label } }] : []));
  return checkRows(rows, { text: "text", label: "label" }, model);
}

/**
 * @param {Row} row
 * @param {Choice} choice
 * @param {Model} model
 * @returns {Checked}
 */
function checkRow(row, choice, { kind, limits, multilabel }) {
  const cell = row.cells[choice.text] ?? "";
  const text = cell.trim();
  const sent = SPANS[kind].length ? cell : text; // spans count from the beginning of the cell
  const label = (row.cells[choice.label] ?? "").trim();
  const spans = spansOf(row, choice, kind, cell);
  const problem =
    row.problem ??
    (!text ? "has no text" : !labelsOfCell(label, multilabel).length ? "has no class" : null) ??
    tooLong(sent, label, limits) ??
    spans.problem;
  const example = problem ? null : { text: sent, label, ...spans.found };
  return { line: row.line, text, label, problem, example };
}

/**
 * @param {string} text
 * @param {string} label
 * @param {Limits} limits
 */
function tooLong(text, label, { text_length, label_length }) {
  if (isLonger(text, text_length)) return `is longer than ${amount(text_length)} characters`;
  if (isLonger(label, label_length)) return `has a class name longer than ${amount(label_length)} characters`;
  return null;
}

/**
 * Whether a text has more characters than that; browsers count some characters twice, the service counts each once.
 * @param {string} text
 * @param {number} most
 */
export function isLonger(text, most) {
  return text.length > most && [...text].length > most;
}

/**
 * @param {Row} row
 * @param {Choice} choice
 * @param {Kind} kind
 * @param {string} text
 */
function spansOf(row, choice, kind, text) {
  /** @type {Record<string, Span>} */
  const found = {};
  for (const name of SPANS[kind]) {
    const span = parseSpan(row.cells[choice[name]] ?? "", [...text].length);
    if (!span) return { found, problem: `has no ${name} as [start, end] within the text` };
    found[name] = span;
  }
  return { found, problem: "" };
}

/**
 * @param {string} cell
 * @param {number} length
 * @returns {Span | null}
 */
function parseSpan(cell, length) {
  const [, start, end] = /^\s*\[\s*(\d+)\s*,\s*(\d+)\s*\]\s*$/.exec(cell) ?? [];
  if (start === undefined) return null;
  return Number(start) < Number(end) && Number(end) <= length ? [Number(start), Number(end)] : null;
}

/**
 * A text that came before is left out; with two classes both are, because one of them is wrong, unless a text may
 * have several.
 * @param {Checked} checked
 * @param {Map<string, Checked>} seen
 * @param {boolean} isMultilabel
 */
function refuseRepeated(checked, seen, isMultilabel) {
  const key = JSON.stringify({ ...checked.example, label: isMultilabel ? checked.label : undefined });
  const earlier = seen.get(key);
  if (!earlier) {
    seen.set(key, checked);
    return;
  }
  checked.example = null;
  if (earlier.label === checked.label) {
    checked.problem = `repeats row ${earlier.line}`;
    return;
  }
  checked.problem = `has another class than the same text in row ${earlier.line}`;
  earlier.problem = `has another class than the same text in row ${checked.line}`;
  earlier.example = null;
}
