/** One class at the side: its numbers, its kept texts, and renaming, merging, removing. */

import { counted, percent } from "../data/format.js";
import { getKeptTexts, mergeClasses, removeClass, renameClass } from "../service/api.js";
import { confirmDialog, openDialog } from "./dialog.js";
import { element, words } from "./element.js";
import { watchInDialog } from "./job_dialog.js";
import { problemNotice } from "./notice.js";

/** @import { ClassRow, Job } from "../types.js" */

/**
 * @param {ClassRow} row
 * @param {ClassRow[]} all
 * @param {boolean} canWrite
 * @returns {Promise<boolean>} Whether something was changed.
 */
export async function openClass(row, all, canWrite) {
  let isChanged = false;
  let changing = Promise.resolve();
  const act = (/** @type {() => Promise<boolean>} */ change) => () => {
    changing = attempt(change);
  };

  /** @param {() => Promise<boolean>} change */
  async function attempt(change) {
    if (!(await change())) return;
    isChanged = true;
    dialog.close();
  }

  const texts = element("div", {}, element("p", { class: "soft" }, "Loading its texts …"));
  const { dialog, closed } = openDialog({
    title: words(row.label),
    shape: "sheet",
    content: [
      numbers(row),
      canWrite &&
        element(
          "div",
          { class: "actions actions-start" },
          element(
            "button",
            { class: "button", type: "button", on: { click: act(() => rename(row, all)) } },
            "Rename",
          ),
          all.length > 1 &&
            element(
              "button",
              { class: "button", type: "button", on: { click: act(() => merge(row, all)) } },
              "Merge",
            ),
          element(
            "button",
            { class: "button button-quiet-bad", type: "button", on: { click: act(() => remove(row)) } },
            "Remove",
          ),
        ),
      texts,
    ],
  });
  showTexts(row, texts);
  await closed;
  await changing;
  return isChanged;
}

/** @param {ClassRow} row */
function numbers(row) {
  const accuracy =
    row.recall === null
      ? "Not checked: too few texts"
      : `${percent(row.recall)} of ${counted(row.checked, "checked text")}`;
  return element(
    "dl",
    { class: "sheet-facts" },
    element("dt", {}, "Learned from"),
    element("dd", {}, row.texts === null ? "not counted" : counted(row.texts, "text")),
    element("dt", {}, "Accuracy"),
    element("dd", {}, accuracy),
    element("dt", {}, "Most confused with"),
    element(
      "dd",
      {},
      row.confused_with ? words(row.confused_with.label) : "nothing",
      row.confused_with && ` (${counted(row.confused_with.count, "text")})`,
    ),
  );
}

/**
 * @param {ClassRow} row
 * @param {HTMLElement} place
 */
async function showTexts(row, place) {
  try {
    const { texts } = await getKeptTexts(row.label);
    const list = element("ul", { class: "quotes" }, ...texts.map((text) => element("li", {}, words(text))));
    place.replaceChildren(
      element("h3", {}, `Kept word for word (${texts.length})`),
      texts.length ? list : element("p", { class: "soft" }, "No text of it is kept."),
    );
  } catch (problem) {
    place.replaceChildren(problemNotice(problem));
  }
}

/**
 * Ask, start the job, follow it.
 * @param {Omit<Parameters<typeof confirmDialog>[0], "act">} question
 * @param {(form: HTMLFormElement) => Promise<Job>} start
 * @param {string} title
 */
async function askAndFollow(question, start, title) {
  /** @type {Job | null} */
  let job = null;
  const act = async (/** @type {HTMLFormElement} */ form) => {
    job = await start(form);
  };
  await confirmDialog({ ...question, act });
  return job !== null && watchInDialog(job, title);
}

/**
 * @param {ClassRow} row
 * @param {ClassRow[]} all
 */
function rename(row, all) {
  const field = element("input", {
    id: "new-name",
    required: true,
    autocomplete: "off",
    dir: "auto",
    value: row.label,
  });
  const taken = () => all.some(({ label }) => label === field.value.trim() && label !== row.label);
  field.addEventListener("input", () =>
    field.setCustomValidity(taken() ? "There is a class with this name: merge them instead." : ""),
  );
  return askAndFollow(
    {
      title: "Rename the class",
      action: "Rename",
      content: [
        element("p", { class: "soft" }, "Its texts and what was learned from them stay."),
        element("div", { class: "field" }, element("label", { for: "new-name" }, "New name"), field),
      ],
    },
    () => renameClass(row.label, field.value.trim()),
    "Renaming",
  );
}

/**
 * @param {ClassRow} row
 * @param {ClassRow[]} all
 */
function merge(row, all) {
  const others = all.filter(({ label }) => label !== row.label);
  const select = element(
    "select",
    { id: "into" },
    ...others.map(({ label }) => element("option", { value: label }, label)),
  );
  if (row.confused_with) select.value = row.confused_with.label;
  return askAndFollow(
    {
      title: "Merge with another class",
      action: "Merge",
      content: [
        element(
          "p",
          { class: "soft" },
          "All texts of ",
          words(row.label, "label"),
          " become texts of the other class. The name ",
          words(row.label, "label"),
          " is gone. You can roll back.",
        ),
        element("div", { class: "field" }, element("label", { for: "into" }, "Merge into"), select),
      ],
    },
    () => mergeClasses([row.label, select.value], select.value),
    "Merging",
  );
}

/** @param {ClassRow} row */
function remove(row) {
  const purge = element("input", { type: "checkbox", id: "purge" });
  const learned =
    row.texts === null
      ? "Everything learned from its texts"
      : `Everything learned from its ${counted(row.texts, "text")}`;
  return askAndFollow(
    {
      title: "Remove the class",
      action: "Remove",
      isDangerous: true,
      content: [
        element("p", {}, "This is deleted from the model in use:"),
        element(
          "ul",
          { class: "plain-list" },
          element("li", {}, "The class ", words(row.label, "label"), ". It is never an answer again."),
          element(
            "li",
            {},
            `${learned}, and ${row.kept === 1 ? "the 1 text" : `the ${counted(row.kept, "text")}`} kept word for word.`,
          ),
        ),
        element("p", {}, "Earlier revisions still hold it, so that you can roll back."),
        element(
          "label",
          { class: "check" },
          purge,
          "Delete those earlier revisions, too. This cannot be undone.",
        ),
      ],
    },
    () => removeClass(row.label, purge.checked),
    "Removing",
  );
}
