/** The answer to one text: its class, the other candidates, and the nearest texts as the reason. */

import { beginDraft } from "../data/draft.js";
import { percent } from "../data/format.js";
import { bar, candidateBars } from "./bars.js";
import { element, icon, words } from "./element.js";

/** @import { Prediction } from "../types.js" */

/**
 * @param {Prediction} found
 * @param {string | null} teachable The text, where it can be taught.
 */
export function answerCards(found, teachable) {
  return element("div", { class: "pair" }, verdict(found, teachable), reasons(found));
}

/** @param {Prediction} found */
export function named(found) {
  return found.unknown ? "Unknown" : labelsOf(found).join(" | ");
}

/** @param {Prediction} found */
export function labelsOf(found) {
  return found.labels.map(({ label }) => label);
}

/**
 * @param {Prediction} found
 * @param {string | null} teachable The text, where it can be taught.
 */
function verdict(found, teachable) {
  const isUnknown = found.unknown;
  const own = new Set(labelsOf(found));
  return element(
    "section",
    { class: isUnknown ? "card verdict is-unknown" : "card verdict", "aria-label": "Answer" },
    element(
      "div",
      { class: "verdict-head" },
      element(
        "h2",
        {},
        isUnknown
          ? element("span", { class: "unknown-mark" }, icon("unknown"), "Unknown")
          : lines(labelsOf(found)),
      ),
      !isUnknown &&
        element(
          "p",
          { class: "confidence" },
          element("span", { class: "spoken" }, "Confidence "),
          percent(found.confidence),
        ),
    ),
    isUnknown
      ? element(
          "p",
          { class: "soft" },
          "It does not look like any class that the model knows. If it is one of them after all:",
        )
      : bar(found.confidence),
    candidateBars(isUnknown ? found.top : found.top.filter(({ label }) => !own.has(label))),
    teachable !== null &&
      element(
        "p",
        { class: "verdict-foot" },
        element(
          "a",
          { href: "#/teach", on: { click: () => beginDraft(teachable) } },
          isUnknown ? "Teach it what this is" : "Not right? Teach it",
        ),
      ),
  );
}

/** @param {string[]} labels */
function lines(labels) {
  return labels.flatMap((label, index) => (index ? [element("br"), words(label)] : [words(label)]));
}

/** @param {Prediction} found */
function reasons(found) {
  const nearest = found.nearest.map(({ text, label, similarity }) =>
    element(
      "li",
      {},
      element("p", { class: "quote" }, words(text)),
      element("p", { class: "soft" }, words(label, "chip"), ` ${percent(similarity)} alike`),
    ),
  );
  return element(
    "section",
    { class: "card reasons", "aria-label": "Why" },
    element("h2", {}, "Nearest texts it has learned"),
    nearest.length
      ? element("ul", { class: "neighbors" }, ...nearest)
      : element("p", { class: "soft" }, "This model keeps no texts to compare with."),
  );
}
