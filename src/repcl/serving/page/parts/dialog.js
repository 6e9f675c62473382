/** Dialogs on the browser's own element, which keeps the focus inside and closes with Escape. */

import { element, icon } from "./element.js";
import { problemNotice } from "./notice.js";

/** @import { Child } from "./element.js" */

let dialogs = 0;

/**
 * Show a dialog.
 * @param {object} options
 * @param {Child} options.title
 * @param {Child[]} options.content
 * @param {"dialog" | "sheet"} [options.shape] A sheet stands at the side.
 * @returns {{dialog: HTMLDialogElement, body: HTMLElement, closed: Promise<void>}}
 */
export function openDialog({ title, content, shape = "dialog" }) {
  const id = `dialog-${(dialogs += 1)}`;
  const body = element("div", { class: "dialog-body" }, ...content);
  const dialog = element(
    "dialog",
    { class: shape, "aria-labelledby": id },
    element("header", { class: "dialog-head" }, element("h2", { id }, title), closeButton()),
    body,
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  const closed = new Promise((/** @type {(nothing: void) => void} */ resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve();
    });
  });
  document.body.append(dialog);
  dialog.showModal();
  return { dialog, body, closed };
}

function closeButton() {
  return element(
    "button",
    {
      class: "icon-button",
      type: "button",
      "aria-label": "Close",
      on: { click: (event) => event.target.closest("dialog").close() },
    },
    icon("close"),
  );
}

/**
 * Ask before something is done. What goes wrong is said in the dialog, which stays open.
 * @param {object} options
 * @param {Child} options.title
 * @param {Child[]} options.content
 * @param {string} options.action What the button says.
 * @param {boolean} [options.isDangerous]
 * @param {(form: HTMLFormElement) => Promise<void>} options.act
 * @returns {Promise<boolean>} Whether it was done.
 */
export async function confirmDialog({ title, content, action, isDangerous = false, act }) {
  let isDone = false;
  const trouble = element("div", {});
  const button = element(
    "button",
    { class: isDangerous ? "button button-bad" : "button button-main", type: "submit" },
    action,
  );
  const cancel = element(
    "button",
    { class: "button", type: "button", on: { click: () => opened.dialog.close() } },
    "Cancel",
  );
  const form = element(
    "form",
    { class: "stack" },
    ...content,
    trouble,
    element("div", { class: "actions" }, cancel, button),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    trouble.replaceChildren();
    try {
      await act(form);
      isDone = true;
      opened.dialog.close();
    } catch (problem) {
      trouble.replaceChildren(problemNotice(problem));
      button.disabled = false;
    }
  });
  const opened = openDialog({ title, content: [form] });
  await opened.closed;
  return isDone;
}
