/** Texts of one class, pasted or typed, one a line. */

import { draft } from "../data/draft.js";
import { checkLines } from "../data/examples.js";
import { element } from "./element.js";

/** @import { Model } from "../types.js" */
/** @import { Checked } from "../data/examples.js" */

/**
 * @param {Model} model
 * @param {Set<string>} known
 * @param {(checked: Checked[]) => void} show
 */
export function makeLinesSource(model, known, show) {
  const label = element("input", {
    id: "label",
    list: "known-labels",
    autocomplete: "off",
    dir: "auto",
    placeholder: "such as gift_card_balance",
  });
  const lines = element("textarea", {
    id: "lines",
    rows: 8,
    dir: "auto",
    placeholder: "how much is left on my gift card\nwhat's the balance of my voucher\n…",
  });
  const list = element(
    "datalist",
    { id: "known-labels" },
    ...[...known].map((name) => element("option", { value: name })),
  );
  label.value = draft.label;
  lines.value = draft.lines;
  const changed = () => {
    draft.label = label.value;
    draft.lines = lines.value;
    show(checkLines(label.value, lines.value, model));
  };
  label.addEventListener("input", changed);
  lines.addEventListener("input", changed);
  const node = element(
    "div",
    { class: "stack stack-tight" },
    element("div", { class: "field" }, element("label", { for: "label" }, "Class"), label, list),
    element("div", { class: "field" }, element("label", { for: "lines" }, "Texts, one a line"), lines),
  );
  return { node, show: changed };
}
