/** What is about to be taught, row by row, with what is left out and why. */

import { labelsOfCell } from "../data/examples.js";
import { counted } from "../data/format.js";
import { element, words } from "./element.js";
import { speak } from "./notice.js";
import { makeTable } from "./table.js";

/** @import { Checked } from "../data/examples.js" */

const CLASSES_SHOWN = 12;

/**
 * @param {Set<string>} known Labels that the model knows.
 * @param {boolean} isMultilabel Whether a text may have several, with `|` between them.
 * @returns {{node: HTMLElement, update: (checked: Checked[]) => void}}
 */
export function makePreview(known, isMultilabel) {
  const node = element("section", { class: "stack stack-tight", "aria-label": "Preview" });

  /** @param {Checked[]} checked */
  function update(checked) {
    if (!checked.length) return node.replaceChildren();
    const left = checked.filter(({ problem }) => problem);
    node.replaceChildren(
      ...[headline(checked, left), classes(checked, known, isMultilabel), rows(checked, left)].filter(
        (part) => part !== null,
      ),
    );
    speak(`${counted(checked.length - left.length, "text")} to teach, ${left.length} left out`);
  }

  return { node, update };
}

/**
 * @param {Checked[]} checked
 * @param {Checked[]} left
 */
function headline(checked, left) {
  return element(
    "h2",
    {},
    counted(checked.length - left.length, "text"),
    left.length > 0 && element("span", { class: "left-out" }, ` · ${counted(left.length, "row")} left out`),
  );
}

/**
 * @param {Checked[]} checked
 * @param {Set<string>} known
 * @param {boolean} isMultilabel
 */
function classes(checked, known, isMultilabel) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { example } of checked) {
    if (!example) continue;
    for (const label of labelsOfCell(example.label, isMultilabel))
      counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  if (!counts.size) return null;
  const ordered = [...counts].sort(([one], [other]) => Number(known.has(one)) - Number(known.has(other)));
  const chips = ordered
    .slice(0, CLASSES_SHOWN)
    .map(([label, count]) =>
      element(
        "li",
        {},
        words(label, "chip"),
        element("span", { class: "soft" }, ` ${count} · ${known.has(label) ? "known" : "new"}`),
      ),
    );
  const rest = counts.size - chips.length;
  return element(
    "ul",
    { class: "chips" },
    ...chips,
    rest > 0 && element("li", { class: "soft" }, `and ${counted(rest, "class")} more`),
  );
}

/**
 * Rows with problems come first: they are what needs a look.
 * @param {Checked[]} checked
 * @param {Checked[]} left
 */
function rows(checked, left) {
  const ordered = [...left, ...checked.filter(({ problem }) => !problem)];
  return makeTable({
    caption: "Rows to teach; those with a problem come first",
    rows: ordered,
    kindOf: ({ problem }) => (problem ? "is-wrong" : ""),
    columns: [
      { name: "Row", isNumber: true, cell: ({ line }) => line },
      {
        name: "Text",
        cell: ({ text, problem }) => [
          words(text),
          problem && element("span", { class: "problem" }, `Left out: ${problem}`),
        ],
      },
      {
        name: "Class",
        isName: true,
        cell: ({ label }) => (label ? words(label) : element("span", { class: "soft" }, "–")),
      },
    ],
  }).node;
}
