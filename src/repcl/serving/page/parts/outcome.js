/** What a finished job did to the classes that were known before: those that got worse come first. */

import { amount, change, counted, percent } from "../data/format.js";
import { measured } from "./bars.js";
import { element, words } from "./element.js";
import { notice } from "./notice.js";
import { makeTable } from "./table.js";

/** @import { ClassChange, DoubtfulText, Job, Summary } from "../types.js" */

const LOSSES_SHOWN = 5;

/**
 * @param {Job} job one that is over
 * @param {boolean} isInUse Whether its revision still answers.
 * @returns {HTMLElement}
 */
export function outcome(job, isInUse) {
  return element(
    "div",
    { class: "stack" },
    verdict(job, isInUse),
    ...(job.summary && hasResult(job) ? details(job.summary) : []),
  );
}

/** @param {Job} job */
function hasResult(job) {
  return job.state === "done" || job.state === "refused";
}

/**
 * How a job ended, and what the guard says about it.
 * @param {Job} job
 * @param {boolean} isInUse Whether its revision still answers.
 */
export function verdict(job, isInUse) {
  const sentence = job.summary?.sentence;
  const reasons = job.summary?.reasons ?? [];
  switch (job.state) {
    case "done":
      return notice(
        reasons.length > 0 ? "warning" : "good",
        `${job.action === "learn" ? "Learned" : "Done"}, ${isInUse ? "and in use" : "but another revision is in use now"}`,
        element("p", {}, sentence ?? `It made revision ${job.revision}.`),
        reasons.length > 0 && element("p", {}, "The guard advises against it:"),
        reasons.length > 0 && plainList(reasons),
      );
    case "refused":
      return notice(
        "warning",
        "Refused, because the guard advises against it",
        element("p", {}, sentence ?? job.problem?.detail ?? ""),
        reasons.length > 0 && plainList(reasons),
        element(
          "p",
          {},
          "Nothing has changed yet: answers still come from the revision before. Look at what would be lost, then decide.",
        ),
      );
    case "discarded":
      return notice(
        "plain",
        "Discarded",
        element("p", {}, job.problem?.detail ?? "The update was thrown away. Nothing has changed."),
      );
    case "canceled":
      return notice(
        "plain",
        "Canceled",
        job.problem && element("p", {}, job.problem.detail),
        element("p", {}, "Nothing has changed."),
      );
    default:
      return notice(
        "bad",
        job.problem?.title ?? "Not done",
        element("p", {}, job.problem?.detail || "Nothing has changed."),
      );
  }
}

/**
 * @param {string[]} sentences
 * @param {string} [kind] another class name
 */
function plainList(sentences, kind = "") {
  return element(
    "ul",
    { class: `plain-list ${kind}`.trim() },
    ...sentences.map((sentence) => element("li", {}, sentence)),
  );
}

/** @param {Summary} summary */
function details(summary) {
  const regressed = summary.classes.filter((one) => one.regressed);
  return [
    facts(summary),
    summary.notes.length > 0 && plainList(summary.notes, "soft"),
    regressed.length > 0 && section("What got worse", ...regressed.slice(0, LOSSES_SHOWN).map(lossCard)),
    summary.doubtful_texts.length > 0 && section("Texts to check", doubtfulTexts(summary.doubtful_texts)),
    summary.classes.length > 0 && section("Classes known before", ...changedAndUnchanged(summary.classes)),
  ].filter((part) => part instanceof HTMLElement);
}

/**
 * What changed is shown, the rest can be opened.
 * @param {ClassChange[]} classes
 */
function changedAndUnchanged(classes) {
  const changed = classes.filter(({ before, after }) => before !== after);
  const rest = classes.filter(({ before, after }) => before === after);
  const summary = element(
    "summary",
    {},
    `${counted(rest.length, "class")} ${rest.length === 1 ? "answers" : "answer"} as before`,
  );
  return [
    changed.length > 0 && beforeAndAfter(changed),
    rest.length > 0 && element("details", {}, summary, beforeAndAfter(rest)),
  ].filter((part) => part instanceof HTMLElement);
}

/**
 * @param {string} title
 * @param {...HTMLElement} content
 */
function section(title, ...content) {
  return element("section", { class: "stack stack-tight" }, element("h2", {}, title), ...content);
}

/** @param {Summary} summary */
function facts(summary) {
  const { accuracy_before: before, accuracy_after: after } = summary;
  return element(
    "dl",
    { class: "facts" },
    fact(
      "Texts",
      amount(summary.examples),
      summary.corrected ? `${counted(summary.corrected, "text")} moved from another class` : "",
    ),
    fact(
      "New classes",
      String(summary.new_classes.length),
      ...summary.new_classes.slice(0, 8).map((label) => words(label, "chip")),
    ),
    after !== null &&
      fact(
        "Accuracy on old classes",
        percent(after),
        before === null ? "" : `${percent(before)} before, ${change(before, after)}`,
      ),
  );
}

/**
 * @param {string} name
 * @param {string} value
 * @param {...(string | Node)} more
 */
function fact(name, value, ...more) {
  return element(
    "div",
    {},
    element("dt", {}, name),
    element("dd", { class: "fact-value" }, value),
    more.some(Boolean) && element("dd", { class: "soft fact-more" }, ...more),
  );
}

/** @param {ClassChange} one */
function lossCard(one) {
  return element(
    "article",
    { class: "card loss" },
    element(
      "h3",
      {},
      words(one.label),
      element("span", { class: "fell" }, `${percent(one.before)} → ${percent(one.after)}`),
    ),
    one.taken_by !== null &&
      element("p", {}, "Its texts are now taken for ", words(one.taken_by, "label"), "."),
    one.lost_texts.length > 0 &&
      element("ul", { class: "quotes" }, ...one.lost_texts.map((text) => element("li", {}, words(text)))),
    one.advice && element("p", { class: "advice" }, one.advice),
  );
}

/**
 * On phones both labels stand below their text, which needs the width.
 * @param {DoubtfulText[]} texts the most doubtful first
 */
function doubtfulTexts(texts) {
  return makeTable({
    caption: "New texts that may have the wrong label: all other texts point to another one",
    rows: texts,
    columns: [
      {
        name: "Text",
        isHead: true,
        cell: (one) => [
          words(one.text),
          element(
            "span",
            { class: "narrow-only soft" },
            "Its label ",
            words(one.label, "label"),
            ", likelier ",
            words(one.likelier, "label"),
          ),
        ],
      },
      {
        name: "Its label",
        isName: true,
        isMinor: true,
        cell: (one) => words(one.label),
        order: (one) => one.label,
      },
      {
        name: "Likelier",
        isName: true,
        isMinor: true,
        cell: (one) => words(one.likelier),
        order: (one) => one.likelier,
      },
    ],
  }).node;
}

/** @param {ClassChange[]} classes */
function beforeAndAfter(classes) {
  return makeTable({
    caption: "Share of held-out texts that got the right answer, before and after",
    rows: classes,
    kindOf: (one) => (one.regressed ? "is-worse" : ""),
    columns: [
      {
        name: "Class",
        isHead: true,
        isName: true,
        cell: (one) => words(one.label),
        order: (one) => one.label,
      },
      {
        name: "Texts checked",
        isNumber: true,
        isMinor: true,
        cell: (one) => one.texts,
        order: (one) => one.texts,
      },
      { name: "Before", isNumber: true, cell: (one) => percent(one.before), order: (one) => one.before },
      { name: "After", isNumber: true, cell: (one) => measured(one.after), order: (one) => one.after },
    ],
  }).node;
}
