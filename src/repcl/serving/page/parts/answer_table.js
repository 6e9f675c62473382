/** The answers to many texts: a table, and the same as a CSV file. */

import { download, writeCsv } from "../data/csv.js";
import { counted } from "../data/format.js";
import { labelsOf, named } from "./answer.js";
import { measured } from "./bars.js";
import { element, words } from "./element.js";
import { makeTable } from "./table.js";

/** @import { Prediction } from "../types.js" */

/** @typedef {{text: string, found: Prediction}} Answered */

/** @param {Answered[]} rows */
export function answerTable(rows) {
  const unknown = rows.filter(({ found }) => found.unknown).length;
  return element(
    "section",
    { class: "stack stack-tight", "aria-label": "Answers" },
    element(
      "div",
      { class: "bar-head" },
      element(
        "h2",
        {},
        counted(rows.length, "text"),
        unknown > 0 && element("span", { class: "soft" }, ` · ${unknown} unknown`),
      ),
      element(
        "button",
        { class: "button", type: "button", on: { click: () => download("answers.csv", csvOf(rows)) } },
        "Download CSV",
      ),
    ),
    table(rows),
  );
}

/** @param {Answered[]} rows */
function table(rows) {
  return makeTable({
    caption: "Texts and their answers",
    rows,
    columns: [
      { name: "Text", cell: ({ text }) => words(text), order: ({ text }) => text },
      {
        name: "Answer",
        isName: true,
        cell: ({ found }) =>
          found.unknown
            ? element("span", { class: "chip chip-warning" }, "Unknown")
            : labelsOf(found).map((label) => words(label, "chip")),
        order: ({ found }) => named(found),
      },
      {
        name: "Sure",
        isNumber: true,
        // how sure it would be among the classes it knows says nothing about a text of none of them
        cell: ({ found }) => measured(found.unknown ? null : found.confidence),
        order: ({ found }) => (found.unknown ? -1 : found.confidence),
      },
    ],
  }).node;
}

/** @param {Answered[]} rows */
function csvOf(rows) {
  const body = rows.map(({ text, found }) => [
    text,
    found.unknown ? "" : named(found),
    Number(found.confidence.toFixed(4)),
    String(found.unknown),
  ]);
  return writeCsv([["text", "predicted", "confidence", "unknown"], ...body]);
}
