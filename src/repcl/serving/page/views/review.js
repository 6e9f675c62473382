/** Texts that the model was not sure of, grouped: name a group or single texts, teach them, or erase them. */

import { counted } from "../data/format.js";
import { confirmDialog } from "../parts/dialog.js";
import { element } from "../parts/element.js";
import { makeGroupCard } from "../parts/group_card.js";
import { empty, showAnew, toast } from "../parts/notice.js";
import { eraseUnknown, getClasses, getUnknown } from "../service/api.js";
import { currentModel, whyReadOnly } from "../service/model.js";

/** @import { Visit } from "../router.js" */
/** @import { Unknown } from "../types.js" */

export const title = "Review";

/** @param {Visit} visit */
export async function build({ signal }) {
  const [model, unknown, { classes }] = await Promise.all([
    currentModel(),
    getUnknown(signal),
    getClasses(signal),
  ]);
  const place = element("div", { class: "stack" });
  const canWrite = !whyReadOnly(model);
  const labels = element(
    "datalist",
    { id: "review-labels" },
    ...classes.map(({ label }) => element("option", { value: label })),
  );
  const reload = () => showAnew(place, async () => show(await getUnknown(signal)), signal);

  /** @param {Unknown} now */
  function show(now) {
    place.replaceChildren(head(now, canWrite, reload), ...content(now, canWrite, reload), labels);
  }

  show(unknown);
  return place;
}

/**
 * @param {Unknown} unknown
 * @param {boolean} canWrite
 * @param {() => Promise<void>} reload
 */
function head(unknown, canWrite, reload) {
  const eraseAll = element(
    "button",
    {
      class: "button button-small button-quiet-bad",
      type: "button",
      on: { click: () => erase(shownIds(unknown), reload) },
    },
    "Erase all",
  );
  return element(
    "header",
    { class: "head" },
    element(
      "div",
      { class: "bar-head" },
      element("h1", {}, unknown.total ? `${counted(unknown.total, "text")} to review` : "Review"),
      canWrite && unknown.total > 0 && eraseAll,
    ),
    element(
      "p",
      { class: "lead" },
      "Texts that the model was not sure of. Say what they are, and it knows the next one.",
    ),
  );
}

/**
 * @param {Unknown} unknown
 * @param {boolean} canWrite
 * @param {() => Promise<void>} reload
 */
function content(unknown, canWrite, reload) {
  if (unknown.groups.length)
    return unknown.groups.map((group, index) =>
      makeGroupCard(group, index, canWrite, (ids) => erase(ids, reload)),
    );
  if (unknown.collects)
    return [
      empty(
        "review",
        "Nothing to review",
        element("p", {}, "Texts that the model is not sure of are kept here as they come in."),
      ),
    ];
  return [
    empty(
      "review",
      "Unsure texts are not kept",
      element(
        "p",
        {},
        "Start the service with ",
        element("code", {}, "--collect"),
        " to keep them here. They are stored beside the model and can be erased at any time.",
      ),
    ),
  ];
}

/**
 * Those that the visitor sees: others may have come in since.
 * @param {Unknown} unknown
 */
function shownIds(unknown) {
  return unknown.groups.flatMap((group) => group.texts.map(({ id }) => id));
}

/**
 * @param {string[]} ids
 * @param {() => Promise<void>} reload
 */
async function erase(ids, reload) {
  let erased = 0;
  const isDone = await confirmDialog({
    title: `Erase ${counted(ids.length, "text")}?`,
    content: [
      element(
        "p",
        {},
        "They are deleted from the file beside the model and not taught. This cannot be undone.",
      ),
    ],
    action: "Erase",
    isDangerous: true,
    act: async () => {
      ({ erased } = await eraseUnknown(ids));
    },
  });
  if (!isDone) return;
  toast(`${counted(erased, "text")} erased.`);
  await reload();
}
