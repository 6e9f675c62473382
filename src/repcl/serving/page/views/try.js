/** Ask the model: one text with its reasons, or many lines as a table. */

import { download, writeCsv } from "../data/csv.js";
import { beginDraft } from "../data/draft.js";
import { SPANS } from "../data/examples.js";
import { counted, percent } from "../data/format.js";
import { bar, candidateBars, measured } from "../parts/bars.js";
import { element, icon, words } from "../parts/element.js";
import { empty, problemNotice, speak } from "../parts/notice.js";
import { makeSpanMarker } from "../parts/span_marker.js";
import { makeTable } from "../parts/table.js";
import { predict } from "../service/api.js";
import { currentModel, whyReadOnly } from "../service/model.js";

/** @import { Asked, Model, Prediction } from "../types.js" */
/** @import { Visit } from "../router.js" */

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
  const field = element("textarea", { id: "text", class: "large", rows: 3, dir: "auto", maxlength: 1e6, "aria-describedby": "text-hint", placeholder: "Where is my parcel?" });
  const eachLine = element("input", { type: "checkbox", id: "each-line", checked: true });
  const lineChoice = element("label", { class: "check", hidden: true }, eachLine, "Each line is a text of its own");
  let asking = new AbortController();
  let timer = 0;

  async function ask() {
    asking.abort();
    asking = new AbortController();
    const { signal: own } = asking;
    typed = field.value;
    const lines = typed.split(/\r?\n/).filter((line) => line.trim());
    lineChoice.hidden = Boolean(marker) || lines.length < 2;
    try {
      const shown = await answerTo(lines, own);
      if (!own.aborted) answer.replaceChildren(shown);
    } catch (problem) {
      if (!own.aborted) answer.replaceChildren(problemNotice(problem));
    }
  }

  /**
   * @param {string[]} lines
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
    element("header", { class: "head" }, element("h1", {}, "Try a text"), element("p", { class: "lead" }, leadOf(model))),
    element(
      "div",
      { class: "ask" },
      element("label", { for: "text", class: "spoken" }, "Text"),
      field,
      marker?.node,
      element("div", { class: "under" }, element("p", { id: "text-hint", class: "soft" }, marker ? "Select words in the text, then mark them." : "Paste many lines to get a table."), lineChoice),
    ),
    answer,
  );
}

/** @param {Model} model */
function leadOf(model) {
  const known = `${model.name} knows ${counted(model.classes, "class")}`;
  return model.texts === null ? `${known}.` : `${known} from ${counted(model.texts, "text")}.`;
}

/** @param {Model} model */
function start(model) {
  if (model.classes) return empty("try", "The answer appears here", element("p", {}, "With how sure the model is, and the texts it has learned that come nearest."));
  return empty("teach", "This model knows no class yet", element("p", {}, element("a", { href: "#/teach" }, "Teach it the first one"), "."));
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
  const { predictions } = await predict([asked], TOP, NEAREST, signal);
  const found = predictions[0];
  const text = typeof asked === "string" ? asked : asked.text;
  speak(`${named(found)}, ${percent(found.confidence)}`);
  return element("div", { class: "pair" }, verdict(found, !whyReadOnly(model) && model.kind === "sentence" ? text : null), reasons(found));
}

/** @param {Prediction} found */
function named(found) {
  return found.unknown ? "Unknown" : labelsOf(found).join(" | ");
}

/** @param {Prediction} found */
function labelsOf(found) {
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
      element("h2", {}, isUnknown ? element("span", { class: "unknown-mark" }, icon("unknown"), "Unknown") : lines(labelsOf(found))),
      !isUnknown && element("p", { class: "confidence" }, element("span", { class: "spoken" }, "Confidence "), percent(found.confidence)),
    ),
    isUnknown ? element("p", { class: "soft" }, "It does not look like any class that the model knows. These come nearest:") : bar(found.confidence),
    candidateBars(isUnknown ? found.top : found.top.filter(({ label }) => !own.has(label))),
    teachable !== null && element("p", { class: "verdict-foot" }, element("a", { href: "#/teach", on: { click: () => beginDraft(teachable) } }, isUnknown ? "Teach it what this is" : "Not right? Teach it")),
  );
}

/** @param {string[]} labels */
function lines(labels) {
  return labels.flatMap((label, index) => (index ? [element("br"), words(label)] : [words(label)]));
}

/** @param {Prediction} found */
function reasons(found) {
  const nearest = found.nearest.map(({ text, label, similarity }) =>
    element("li", {}, element("p", { class: "quote" }, words(text)), element("p", { class: "soft" }, words(label, "chip"), ` ${percent(similarity)} alike`)),
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

/**
 * @param {Model} model
 * @param {string[]} lines
 * @param {AbortSignal} signal
 */
async function manyAnswers(model, lines, signal) {
  /** @type {{text: string, found: Prediction}[]} */
  const rows = [];
  const most = model.limits.texts_per_request;
  for (let from = 0; from < lines.length; from += most) {
    const part = lines.slice(from, from + most);
    const { predictions } = await predict(part, 1, 0, signal);
    part.forEach((text, index) => rows.push({ text: text.trim(), found: predictions[index] }));
  }
  const unknown = rows.filter(({ found }) => found.unknown).length;
  speak(`${counted(rows.length, "text")} answered`);
  return element(
    "section",
    { class: "stack stack-tight", "aria-label": "Answers" },
    element(
      "div",
      { class: "bar-head" },
      element("h2", {}, counted(rows.length, "text"), unknown > 0 && element("span", { class: "soft" }, ` · ${unknown} unknown`)),
      element("button", { class: "button", type: "button", on: { click: () => download("answers.csv", csvOf(rows)) } }, "Download CSV"),
    ),
    answersTable(rows),
  );
}

/** @param {{text: string, found: Prediction}[]} rows */
function answersTable(rows) {
  return makeTable({
    caption: "Texts and their answers",
    rows,
    columns: [
      { name: "Text", cell: ({ text }) => words(text), order: ({ text }) => text },
      { name: "Answer", isName: true, cell: ({ found }) => (found.unknown ? element("span", { class: "chip chip-warning" }, "Unknown") : labelsOf(found).map((label) => words(label, "chip"))), order: ({ found }) => named(found) },
      { name: "Sure", isNumber: true, cell: ({ found }) => measured(found.confidence), order: ({ found }) => found.confidence },
    ],
  }).node;
}

/** @param {{text: string, found: Prediction}[]} rows */
function csvOf(rows) {
  const body = rows.map(({ text, found }) => [text, found.unknown ? "" : named(found), Number(found.confidence.toFixed(4)), String(found.unknown)]);
  return writeCsv([["text", "predicted", "confidence", "unknown"], ...body]);
}
