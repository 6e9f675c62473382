/** A file or pasted rows with a header; which column is which can be chosen. */

import { SPANS, checkRows, guessChoice } from "../data/examples.js";
import { readFile, readTable } from "../data/table_file.js";
import { makeDropZone } from "./drop_zone.js";
import { element } from "./element.js";
import { inWords, notice } from "./notice.js";

/** @import { Model } from "../types.js" */
/** @import { Checked } from "../data/examples.js" */
/** @import { Table } from "../data/table_file.js" */

/**
 * @param {Model} model
 * @param {(checked: Checked[]) => void} show
 */
export function makeFileSource(model, show) {
  let refresh = () => show([]);
  const below = element("div", { class: "stack stack-tight" });
  const zone = makeDropZone((source) => take(source));

  /** @param {File | string} source */
  async function take(source) {
    try {
      choose(
        typeof source === "string" ? readTable(source) : await readFile(source, model.limits.body_bytes),
      );
    } catch (problem) {
      refresh = () => show([]);
      below.replaceChildren(notice("bad", "This cannot be read", element("p", {}, inWords(problem))));
      refresh();
    }
  }

  /** @param {Table} read */
  function choose(read) {
    const choice = guessChoice(read.columns, model.kind);
    refresh = () => show(checkRows(read.rows, choice, model));
    const fields = ["text", "label", ...SPANS[model.kind]].map((role) =>
      columnField(role, read.columns, choice[role], (column) => {
        choice[role] = column;
        refresh();
      }),
    );
    below.replaceChildren(
      element("div", { class: "columns" }, ...fields),
      read.note ? notice("warning", "Look twice", element("p", {}, read.note)) : "",
    );
    refresh();
  }

  return {
    node: element("div", { class: "stack stack-tight" }, zone, below),
    show: () => refresh(),
  };
}

/**
 * @param {string} role
 * @param {string[]} columns
 * @param {string} chosen
 * @param {(column: string) => void} changed
 */
function columnField(role, columns, chosen, changed) {
  const names = /** @type {Record<string, string>} */ ({ text: "Text is in", label: "Class is in" });
  const select = element(
    "select",
    { id: `column-${role}`, on: { change: (event) => changed(event.currentTarget.value) } },
    ...columns.map((column) => element("option", { value: column }, column)),
  );
  select.value = chosen;
  return element(
    "div",
    { class: "field" },
    element("label", { for: `column-${role}` }, names[role] ?? `The ${role} is in`),
    select,
  );
}
