/** Unsure texts that are alike: one name for all, another for some, then they are taught or erased. */

import { counted, day, percent } from "../data/format.js";
import { go } from "../router.js";
import { learn } from "../service/api.js";
import { element, words } from "./element.js";
import { problemNotice } from "./notice.js";

/** @import { Collected, Group } from "../types.js" */

/**
 * @param {Group} group
 * @param {number} index
 * @param {boolean} canWrite
 * @param {(ids: string[]) => void} erase
 */
export function makeGroupCard(group, index, canWrite, erase) {
  const id = `group-${index}`;
  const trouble = element("div", {});
  const name = element("input", {
    id,
    list: "review-labels",
    autocomplete: "off",
    dir: "auto",
    placeholder: "Name of the class",
  });
  const lines = group.texts.map((collected) => textLine(collected, canWrite, () => update()));
  const teach = element("button", {
    class: "button button-main",
    type: "button",
    on: { click: () => teachGroup() },
  });
  const away = element("button", {
    class: "button button-quiet-bad",
    type: "button",
    on: { click: () => erase(chosenIds()) },
  });
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
    teach.textContent =
      isNamed || !chosen.length ? `Teach ${counted(chosen.length, "text")}` : "Name the class to teach it";
    away.disabled = !chosen.length;
    away.textContent = `Erase ${counted(chosen.length, "text")}`;
  }

  async function teachGroup() {
    teach.disabled = true;
    trouble.replaceChildren();
    const chosen = examples();
    try {
      const job = await learn(
        chosen.map(({ example }) => example),
        chosen.map(({ id }) => id),
      );
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
    element(
      "h2",
      { id: `${id}-title` },
      group.texts.length > 1 ? `${counted(group.texts.length, "text")} that are alike` : "A single text",
    ),
    canWrite &&
      element(
        "div",
        { class: "field" },
        element("label", { for: id }, group.texts.length > 1 ? "They are" : "It is"),
        name,
      ),
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
  const own = element("input", {
    class: "own-label",
    list: "review-labels",
    autocomplete: "off",
    dir: "auto",
    placeholder: "another class",
    "aria-label": `Another class for: ${collected.text}`,
    on: { input: changed },
  });
  const guess = element("p", { class: "soft" }, ...guessWords(collected), day(collected.when));
  const text = canWrite
    ? element("label", { class: "check" }, chosen, words(collected.text))
    : element("p", {}, words(collected.text));
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
