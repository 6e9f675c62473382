/** Texts that the model was not sure of, grouped: name a group or single texts, teach them, or erase them. */

import { counted, day, percent } from "../data/format.js";
import { confirmDialog } from "../parts/dialog.js";
import { element, words } from "../parts/element.js";
import { empty, problemNotice, toast } from "../parts/notice.js";
import { go } from "../router.js";
import { eraseUnknown, getClasses, getUnknown, learn } from "../service/api.js";
import { currentModel, whyReadOnly } from "../service/model.js";

/** @import { Visit } from "../router.js" */
/** @import { Collected, Group, Unknown } from "../types.js" */

export const title = "Review";

/** @param {Visit} visit */
export async function build({ signal }) {
  const [model, unknown, { classes }] = await Promise.all([currentModel(), getUnknown(signal), getClasses(signal)]);
  const place = element("div", { class: "stack" });
  const canWrite = !whyReadOnly(model);
  const labels = element("datalist", { id: "review-labels" }, ...classes.map(({ label }) => element("option", { value: label })));
  const reload = async () => show(await getUnknown(signal));

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
  const eraseAll = element("button", { class: "button button-small button-quiet-bad", type: "button", on: { click: () => erase("all", unknown.total, reload) } }, "Erase all");
  return element(
    "header",
    { class: "head" },
    element("div", { class: "bar-head" }, element("h1", {}, unknown.total ? `${counted(unknown.total, "text")} to review` : "Review"), canWrite && unknown.total > 0 && eraseAll),
    element("p", { class: "lead" }, "Texts that the model was not sure of. Say what they are, and it knows the next one."),
  );
}

/**
 * @param {Unknown} unknown
 * @param {boolean} canWrite
 * @param {() => Promise<void>} reload
 */
function content(unknown, canWrite, reload) {
  if (unknown.groups.length) return unknown.groups.map((group, index) => groupCard(group, index, canWrite, reload));
  if (unknown.collects) return [empty("review", "Nothing to review", element("p", {}, "Texts that the model is not sure of are kept here as they come in."))];
  return [
    empty("review", "Unsure texts are not kept", element("p", {}, "Start the service with ", element("code", {}, "--collect"), " to keep them here. They are stored beside the model and can be erased at any time.")),
  ];
}

/**
 * @param {Group} group
 * @param {number} index
 * @param {boolean} canWrite
 * @param {() => Promise<void>} reload
 */
function groupCard(group, index, canWrite, reload) {
  const id = `group-${index}`;
  const trouble = element("div", {});
  const name = element("input", { id, list: "review-labels", autocomplete: "off", dir: "auto", placeholder: "Name of the class", value: group.name });
  const lines = group.texts.map((collected) => textLine(collected, canWrite, () => update()));
  const teach = element("button", { class: "button button-main", type: "button", on: { click: () => teachGroup() } });
  const away = element("button", { class: "button button-quiet-bad", type: "button", on: { click: () => erase(chosenIds(), chosenIds().length, reload) } });
  const chosenIds = () => lines.filter((line) => line.isChosen()).map((line) => line.collected.id);

  function examples() {
    return lines
      .filter((line) => line.isChosen())
      .map(({ collected, ownLabel }) => {
        const { id, text, head, tail, trigger } = collected;
        return { id, example: { text, label: ownLabel() || name.value.trim(), head, tail, trigger } };
      });
  }

  function update() {
    const chosen = examples();
    const isNamed = chosen.every(({ example }) => example.label);
    teach.disabled = !chosen.length || !isNamed;
    teach.textContent = isNamed || !chosen.length ? `Teach ${counted(chosen.length, "text")}` : "Name the class to teach it";
    away.disabled = !chosen.length;
    away.textContent = `Erase ${counted(chosen.length, "text")}`;
  }

  async function teachGroup() {
    teach.disabled = true;
    trouble.replaceChildren();
    const chosen = examples();
    try {
      const job = await learn(chosen.map(({ example }) => example), chosen.map(({ id }) => id));
      go(`/jobs/${encodeURIComponent(job.id)}`);
    } catch (problem) {
      trouble.replaceChildren(problemNotice(problem));
      update();
    }
  }

  name.addEventListener("input", update);
  update();
  return element(
    "section",
    { class: "card group", "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, group.texts.length > 1 ? `${counted(group.texts.length, "text")} that are alike` : "A single text"),
    canWrite && element("div", { class: "field" }, element("label", { for: id }, group.texts.length > 1 ? "They are" : "It is"), name),
    element("ul", { class: "collected" }, ...lines.map((line) => line.node)),
    trouble,
    canWrite && element("div", { class: "actions actions-start" }, teach, away),
  );
}

/**
 * A text that can be left out, or get a class of its own.
 * @param {Collected} collected
 * @param {boolean} canWrite
 * @param {() => void} changed
 */
function textLine(collected, canWrite, changed) {
  const chosen = element("input", { type: "checkbox", checked: true, on: { change: changed } });
  const own = element("input", { class: "own-label", list: "review-labels", autocomplete: "off", dir: "auto", placeholder: "another class", "aria-label": `Another class for: ${collected.text}`, on: { input: changed } });
  const guess = element("p", { class: "soft" }, ...guessWords(collected), day(collected.when));
  const text = canWrite ? element("label", { class: "check" }, chosen, words(collected.text)) : element("p", {}, words(collected.text));
  return {
    node: element("li", {}, element("div", { class: "collected-words" }, text, guess), canWrite && own),
    collected,
    isChosen: () => chosen.checked,
    ownLabel: () => own.value.trim(),
  };
}

/** @param {Collected} collected */
function guessWords({ label, confidence }) {
  return label === null ? [] : ["Best guess ", words(label, "label"), ` ${percent(confidence)} · `];
}

/**
 * @param {string[] | "all"} ids
 * @param {number} count
 * @param {() => Promise<void>} reload
 */
async function erase(ids, count, reload) {
  const isDone = await confirmDialog({
    title: `Erase ${counted(count, "text")}?`,
    content: [element("p", {}, "They are deleted from the file beside the model and not taught. This cannot be undone.")],
    action: "Erase",
    isDangerous: true,
    act: async () => {
      await eraseUnknown(ids);
    },
  });
  if (!isDone) return;
  toast(`${counted(count, "text")} erased.`);
  await reload();
}
