/** Shares as bars; the number stands beside each, so nothing depends on seeing them. */

import { percent } from "../data/format.js";
import { element, withShare, words } from "./element.js";

/** @param {number} share */
export function bar(share) {
  return withShare(element("span", { class: "bar", "aria-hidden": "true" }), share);
}

/**
 * A number with a small bar beside it, for tables.
 * @param {number | null} share
 */
export function measured(share) {
  if (share === null) return element("span", { class: "soft" }, "–");
  return element("span", { class: "measured" }, bar(share), element("span", {}, percent(share)));
}

/**
 * @param {{label: string, probability: number}[]} candidates best first
 */
export function candidateBars(candidates) {
  const lines = candidates.map(({ label, probability }) =>
    element(
      "li",
      { class: "candidate" },
      words(label),
      element("span", { class: "number" }, percent(probability)),
      bar(probability),
    ),
  );
  return element("ol", { class: "candidates" }, ...lines);
}
