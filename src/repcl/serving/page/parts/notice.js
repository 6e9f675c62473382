/** What the page says by itself: notes, failures, empty places, short messages. */

import { Problem } from "../service/api.js";
import { element, icon } from "./element.js";

/** @import { Child } from "./element.js" */

const SECONDS_SHOWN = 6;

/**
 * A box that says something of weight.
 * @param {"plain" | "good" | "warning" | "bad"} tone
 * @param {string} title
 * @param {...Child} children
 */
export function notice(tone, title, ...children) {
  const sign = { plain: null, good: "done", warning: "warning", bad: "warning" }[tone];
  return element(
    "section",
    { class: `notice notice-${tone}`, role: tone === "bad" ? "alert" : null },
    sign && icon(sign),
    element("div", { class: "notice-words" }, element("h2", {}, title), ...children),
  );
}

/**
 * What there is to see where there is nothing yet.
 * @param {string} symbol
 * @param {string} title
 * @param {...Child} children
 */
export function empty(symbol, title, ...children) {
  return element("div", { class: "empty" }, icon(symbol), element("h2", {}, title), ...children);
}

export function loading() {
  return element(
    "div",
    { class: "loading", role: "status" },
    element("span", { class: "spoken" }, "Loading"),
    element("div", { class: "skeleton skeleton-title" }),
    element("div", { class: "skeleton" }),
    element("div", { class: "skeleton" }),
  );
}

/**
 * A view that could not be shown.
 * @param {unknown} problem
 * @param {() => void} again
 */
export function failure(problem, again) {
  const button = element("button", { class: "button", type: "button", on: { click: again } }, "Try again");
  return element("div", {}, element("h1", { class: "spoken" }, "Not shown"), problemNotice(problem, button));
}

/**
 * @param {unknown} problem
 * @param {...Child} children
 */
export function problemNotice(problem, ...children) {
  const { title, sentences } = told(problem);
  return notice("bad", title, ...sentences.map((sentence) => element("p", {}, sentence)), ...children);
}

/**
 * Show something anew in its place, or what went wrong with a way to try again.
 * @param {HTMLElement} place
 * @param {() => Promise<void>} show
 * @param {AbortSignal} signal Fires when nobody looks at it any longer.
 */
export async function showAnew(place, show, signal) {
  try {
    await show();
  } catch (problem) {
    if (!signal.aborted) place.replaceChildren(failure(problem, () => showAnew(place, show, signal)));
  }
}

/**
 * What went wrong, as one sentence.
 * @param {unknown} problem
 */
export function inWords(problem) {
  return problem instanceof Error ? problem.message : String(problem);
}

/**
 * @param {unknown} problem
 * @returns {{title: string, sentences: string[]}}
 */
function told(problem) {
  if (!(problem instanceof Problem)) {
    return { title: "Something is wrong with this page", sentences: [inWords(problem)] };
  }
  const parts = problem.errors.slice(0, 5).map((error) => `${error.location}: ${error.message}`);
  return { title: problem.title, sentences: [problem.detail, ...parts].filter(Boolean) };
}

/**
 * Say something in the corner for a few seconds; screen readers hear it.
 * @param {string} sentence
 */
export function toast(sentence) {
  const shown = element("p", { class: "toast" }, sentence);
  document.getElementById("toasts")?.append(shown);
  setTimeout(() => shown.remove(), SECONDS_SHOWN * 1000);
}

/**
 * Say something to screen readers only.
 * @param {string} sentence
 */
export function speak(sentence) {
  const place = document.getElementById("spoken");
  if (place && place.textContent !== sentence) place.textContent = sentence;
}
