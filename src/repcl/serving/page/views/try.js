/** Ask the model: one text with its reasons, or many lines as a table. */

import { SPANS, isLonger } from "../data/examples.js";
import { amount, counted, percent } from "../data/format.js";
import { answerCards, named } from "../parts/answer.js";
import { answerTable } from "../parts/answer_table.js";
import { element } from "../parts/element.js";
import { empty, notice, problemNotice, speak } from "../parts/notice.js";
import { makeSpanMarker } from "../parts/span_marker.js";
import { predict } from "../service/api.js";
import { currentModel, whyReadOnly } from "../service/model.js";

/** @import { Asked, Model } from "../types.js" */
/** @import { Answered } from "../parts/answer_table.js" */
/** @import { Visit } from "../router.js" */

/** @typedef {{number: number, text: string}} Line A line that is not empty, and which one it is, from 1. */

export const title = "Try";

const TOP = 5;
const NEAREST = 3;
const PAUSE = 250;
/** What was typed last, for when the visitor comes back. */
let typed = "";

/** @param {Visit} visit */
export async function build({ signal }) {
  const model = await currentModel();
  const marker = SPANS[model.kind].length ? makeSpanMarker(SPANS[model.kind]) : null;
  const answer = element("div", { class: "answers" });
  const field = element("textarea", {
    id: "text",
    class: "large",
    rows: 3,
    dir: "auto",
    maxlength: 1e6,
    "aria-describedby": "text-hint",
    placeholder: "Where is my parcel?",
  });
  const eachLine = element("input", { type: "checkbox", id: "each-line", checked: true });
  const lineChoice = element(
    "label",
    { class: "check", hidden: true },
    eachLine,
    "Each line is a text of its own",
  );
  let asking = new AbortController();
  let timer = 0;

  async function ask() {
    asking.abort();
    asking = new AbortController();
    const { signal: own } = asking;
    typed = field.value;
    const lines = linesOf(typed);
    lineChoice.hidden = Boolean(marker) || lines.length < 2;
    try {
      const shown = await answerTo(lines, own);
      if (!own.aborted) answer.replaceChildren(shown);
    } catch (problem) {
      if (!own.aborted) answer.replaceChildren(problemNotice(problem));
    }
  }

  /**
   * @param {Line[]} lines
   * @param {AbortSignal} own
   */
  async function answerTo(lines, own) {
    if (!lines.length) return start(model);
    if (marker) return spanAnswer(model, marker.asked(), own);
    if (lines.length > 1 && eachLine.checked) return manyAnswers(model, lines, own);
    return oneAnswer(model, typed.trim(), own);
  }

  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  };
  field.addEventListener("input", later);
  eachLine.addEventListener("change", ask);
  marker?.attach(field, ask);
  signal.addEventListener("abort", () => asking.abort());
  field.value = typed;
  ask();
  return element(
    "div",
    { class: "stack" },
    element(
      "header",
      { class: "head" },
      element("h1", {}, "Try a text"),
      element("p", { class: "lead" }, leadOf(model)),
    ),
    element(
      "div",
      { class: "ask" },
      element("label", { for: "text", class: "spoken" }, "Text"),
      field,
      marker?.node,
      element(
        "div",
        { class: "under" },
        element(
          "p",
          { id: "text-hint", class: "soft" },
          marker ? "Select words in the text, then mark them." : "Paste many lines to get a table.",
        ),
        lineChoice,
      ),
    ),
    answer,
  );
}

/**
 * @param {string} text
 * @returns {Line[]}
 */
function linesOf(text) {
  const all = text.split(/\r?\n/).map((line, index) => ({ number: index + 1, text: line }));
  return all.filter((line) => line.text.trim());
}

/** @param {Model} model */
function leadOf(model) {
  const known = `${model.name} knows ${counted(model.classes, "class")}`;
  return model.texts === null ? `${known}.` : `${known} from ${counted(model.texts, "text")}.`;
}

/** @param {Model} model */
function start(model) {
  if (model.classes)
    return empty(
      "try",
      "The answer appears here",
      element("p", {}, "With how sure the model is, and the texts it has learned that come nearest."),
    );
  return empty(
    "teach",
    "This model knows no class yet",
    element("p", {}, element("a", { href: "#/teach" }, "Teach it the first one"), "."),
  );
}

/**
 * @param {Model} model
 * @param {Asked | string} asked Either what is asked, or what is missing.
 * @param {AbortSignal} signal
 */
async function spanAnswer(model, asked, signal) {
  if (typeof asked === "string") return empty("try", "Mark the words it is about", element("p", {}, asked));
  return oneAnswer(model, asked, signal);
}

/**
 * @param {Model} model
 * @param {string | Asked} asked
 * @param {AbortSignal} signal
 */
async function oneAnswer(model, asked, signal) {
  const text = typeof asked === "string" ? asked : asked.text;
  const longest = model.limits.text_length;
  if (isLonger(text, longest)) return leftOut("The text was", longest);
  const { predictions } = await predict([asked], TOP, NEAREST, signal);
  const found = predictions[0];
  speak(`${named(found)}, ${percent(found.confidence)}`);
  return answerCards(found, !whyReadOnly(model) && model.kind === "sentence" ? text : null);
}

/**
 * Lines that are too long are left out, so that the others have their answers.
 * @param {Model} model
 * @param {Line[]} lines
 * @param {AbortSignal} signal
 */
async function manyAnswers(model, lines, signal) {
  /** @type {Answered[]} */
  const rows = [];
  const most = model.limits.texts_per_request;
  const longest = model.limits.text_length;
  const tooLong = lines.filter(({ text }) => isLonger(text, longest));
  const asked = lines.filter(({ text }) => !isLonger(text, longest)).map(({ text }) => text);
  for (let from = 0; from < asked.length; from += most) {
    const part = asked.slice(from, from + most);
    const { predictions } = await predict(part, 1, 0, signal);
    part.forEach((text, index) => rows.push({ text: text.trim(), found: predictions[index] }));
  }
  speak(`${counted(rows.length, "text")} answered`);
  return element(
    "div",
    { class: "stack" },
    tooLong.length > 0 && leftOut(whichLines(tooLong), longest),
    rows.length > 0 && answerTable(rows),
  );
}

/** @param {Line[]} lines at least one */
function whichLines([first, ...others]) {
  return others.length
    ? `Line ${first.number} and ${counted(others.length, "other")} were`
    : `Line ${first.number} was`;
}

/**
 * @param {string} what
 * @param {number} longest
 */
function leftOut(what, longest) {
  const sentence = `${what} left unanswered: a text has at most ${amount(longest)} characters.`;
  return notice("warning", "Too long", element("p", {}, sentence));
}
