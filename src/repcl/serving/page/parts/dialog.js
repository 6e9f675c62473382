/** Dialogs on the browser's own element, which keeps the focus inside and closes with Escape. */

import { element, icon } from "./element.js";
import { inWords, problemNotice, toast } from "./notice.js";

/** @import { Child } from "./element.js" */

let dialogs = 0;

/**
 * Show a dialog. A press beside it closes it, and so does another address, as on Back.
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
  closeWhenPressedBeside(dialog);
  const leave = () => dialog.close();
  addEventListener("hashchange", leave);
  const closed = new Promise((/** @type {(nothing: void) => void} */ resolve) => {
    dialog.addEventListener("close", () => {
      removeEventListener("hashchange", leave);
      dialog.remove();
      resolve();
    });
  });
  document.body.append(dialog);
  dialog.showModal();
  return { dialog, body, closed };
}

/**
 * The press must begin there, too: words that are selected may end beside the dialog.
 * @param {HTMLDialogElement} dialog
 */
function closeWhenPressedBeside(dialog) {
  let beganBeside = false;
  const isBeside = (/** @type {MouseEvent} */ { target, clientX, clientY }) => {
    const { left, right, top, bottom } = dialog.getBoundingClientRect();
    const isWithin = left <= clientX && clientX <= right && top <= clientY && clientY <= bottom;
    return target === dialog && !isWithin;
  };
  dialog.addEventListener("pointerdown", (event) => {
    beganBeside = isBeside(event);
  });
  dialog.addEventListener("click", (event) => {
    if (beganBeside && isBeside(event)) dialog.close();
  });
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
 * Ask before something is done. What goes wrong is said in the dialog, which stays open; if the visitor closes it
 * while it is being done, what comes of that is waited for.
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
  let doing = Promise.resolve();
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

  async function attempt() {
    button.disabled = true;
    trouble.replaceChildren();
    try {
      await act(form);
      isDone = true;
      opened.dialog.close();
    } catch (problem) {
      if (!opened.dialog.open) toast(inWords(problem));
      trouble.replaceChildren(problemNotice(problem));
      button.disabled = false;
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    doing = attempt();
  });
  const opened = openDialog({ title, content: [form] });
  await opened.closed;
  await doing;
  return isDone;
}
