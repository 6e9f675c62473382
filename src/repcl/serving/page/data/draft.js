/** Texts on their way to being taught, kept while the visitor looks at other views. */

/** @typedef {{label: string, lines: string}} Draft */

/** @type {Draft} */
export const draft = { label: "", lines: "" };

/**
 * Begin with a text whose class is still to be named.
 * @param {string} text
 */
export function beginDraft(text) {
  draft.label = "";
  draft.lines = text.replace(/\s+/g, " ").trim();
}

export function clearDraft() {
  draft.label = "";
  draft.lines = "";
}
