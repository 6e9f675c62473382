/** All classes: what they were learned from, how well they hold, and what can be done with them. */

import { counted } from "../data/format.js";
import { measured } from "../parts/bars.js";
import { element, words } from "../parts/element.js";
import { empty, showAnew } from "../parts/notice.js";
import { openClass } from "../parts/class_sheet.js";
import { makeTable } from "../parts/table.js";
import { getClasses } from "../service/api.js";
import { currentModel, whyReadOnly } from "../service/model.js";

/** @import { Visit } from "../router.js" */
/** @import { ClassRow } from "../types.js" */
/** @import { Column } from "../parts/table.js" */

export const title = "Classes";

/** @param {Visit} visit */
export async function build({ signal }) {
  const [model, { classes }] = await Promise.all([currentModel(), getClasses(signal)]);
  const head = element(
    "header",
    { class: "head" },
    element("h1", {}, counted(classes.length, "class")),
    element(
      "p",
      { class: "lead" },
      "Accuracy is the share of texts that it gets right without having learned them.",
    ),
  );
  if (!classes.length) {
    return element(
      "div",
      { class: "stack" },
      head,
      empty(
        "classes",
        "No classes yet",
        element("p", {}, element("a", { href: "#/teach" }, "Teach the first one"), "."),
      ),
    );
  }
  const canWrite = !whyReadOnly(model);
  let all = classes;
  const table = makeTable({ caption: "Classes", rows: classes, columns: columns((row) => open(row)) });
  const none = element("p", { class: "soft", hidden: true }, "No class has this in its name.");
  const search = element("input", {
    id: "search",
    type: "search",
    placeholder: "Find a class",
    autocomplete: "off",
    on: { input: () => filter() },
  });

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    const found = all.filter(({ label }) => label.toLowerCase().includes(wanted));
    table.update(found);
    none.hidden = found.length > 0;
  }

  /** @param {ClassRow} row */
  async function open(row) {
    if (await openClass(row, all, canWrite)) await showAnew(place, show, signal);
  }

  async function show() {
    all = (await getClasses(signal)).classes;
    const heading = head.querySelector("h1");
    if (heading) heading.textContent = counted(all.length, "class");
    filter();
    place.replaceChildren(...content);
  }

  const content = [
    head,
    element(
      "div",
      { class: "field search" },
      element("label", { for: "search", class: "spoken" }, "Find a class"),
      search,
    ),
    element("div", {}, table.node, none),
  ];
  const place = element("div", { class: "stack" }, ...content);
  return place;
}

/**
 * @param {(row: ClassRow) => void} open
 * @returns {Column<ClassRow>[]}
 */
function columns(open) {
  return [
    {
      name: "Class",
      isHead: true,
      isName: true,
      cell: (row) =>
        element(
          "button",
          { class: "row-link", type: "button", on: { click: () => open(row) } },
          words(row.label),
        ),
      order: (row) => row.label,
    },
    { name: "Texts", isNumber: true, cell: (row) => row.texts ?? "–", order: (row) => row.texts },
    { name: "Accuracy", isNumber: true, cell: (row) => measured(row.recall), order: (row) => row.recall },
    {
      name: "Most confused with",
      isMinor: true,
      cell: (row) =>
        row.confused_with
          ? [
              words(row.confused_with.label),
              element("span", { class: "soft" }, ` ${row.confused_with.count}×`),
            ]
          : element("span", { class: "soft" }, "–"),
      order: (row) => row.confused_with?.count ?? null,
    },
    { name: "Kept", isNumber: true, isMinor: true, cell: (row) => row.kept, order: (row) => row.kept },
  ];
}
