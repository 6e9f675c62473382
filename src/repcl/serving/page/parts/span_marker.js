/** Marks the words of a text that a relation or an event is about. */

import { element, words } from "./element.js";

/** @import { Asked, Span } from "../types.js" */

/**
 * @typedef {object} SpanMarker
 * @property {HTMLElement} node
 * @property {(field: HTMLTextAreaElement, changed: () => void) => void} attach
 * @property {() => Asked | string} asked The text with its spans, or a sentence about what is missing.
 */

/**
 * @param {("head" | "tail" | "trigger")[]} names
 * @returns {SpanMarker}
 */
export function makeSpanMarker(names) {
  /** @type {Partial<Record<"head" | "tail" | "trigger", [number, number]>>} */
  const marked = {};
  /** @type {HTMLTextAreaElement | null} */
  let field = null;
  let changed = () => {};
  const buttons = names.map((name) =>
    element(
      "button",
      { class: "button", type: "button", on: { click: () => mark(name) } },
      `Mark as ${name}`,
    ),
  );
  const shown = element("p", { class: "soft", role: "status" });
  const node = element("div", { class: "spans" }, ...buttons, shown);

  /** @param {"head" | "tail" | "trigger"} name */
  function mark(name) {
    if (!field || field.selectionStart === field.selectionEnd) return;
    marked[name] = [field.selectionStart, field.selectionEnd];
    show();
    changed();
  }

  function show() {
    const text = field?.value ?? "";
    const parts = names.flatMap((name) => {
      const span = marked[name];
      return span ? [`${name}: `, words(text.slice(...span), "label"), " "] : [];
    });
    shown.replaceChildren(...parts);
  }

  return {
    node,
    attach(textarea, listener) {
      field = textarea;
      changed = listener;
      // positions mean nothing once the text around them has changed
      field.addEventListener("input", () => {
        for (const name of names) delete marked[name];
        show();
      });
    },
    asked() {
      const text = field?.value ?? "";
      const missing = names.filter((name) => !marked[name]);
      if (missing.length) return `Still to mark: ${missing.join(" and ")}.`;
      return {
        text,
        ...Object.fromEntries(names.map((name) => [name, inCharacters(text, marked[name] ?? [0, 0])])),
      };
    },
  };
}

/**
 * Browsers count some characters twice, the service counts each once.
 * @param {string} text
 * @param {[number, number]} span
 * @returns {Span}
 */
function inCharacters(text, [start, end]) {
  return [[...text.slice(0, start)].length, [...text.slice(0, end)].length];
}
