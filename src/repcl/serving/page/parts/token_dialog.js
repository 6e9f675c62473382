/** Asks for the token that the service was started with. */

import { isSendable } from "../service/token.js";
import { openDialog } from "./dialog.js";
import { element } from "./element.js";

const NOT_SENDABLE =
  "A token has only plain letters, digits and signs, and this has others, such as spaces, curly quotes or hidden characters: copy the token alone, or type it.";

/**
 * @param {boolean} isWrong Whether one was given that the service did not take.
 * @returns {Promise<string | null>} null where none is given
 */
export async function askForToken(isWrong) {
  /** @type {string | null} */
  let given = null;
  const field = element("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    required: true,
    spellcheck: "false",
    "aria-describedby": "token-hint",
  });
  field.addEventListener("input", () =>
    field.setCustomValidity(!field.value || isSendable(field.value.trim()) ? "" : NOT_SENDABLE),
  );
  const form = element(
    "form",
    { class: "stack" },
    isWrong &&
      element(
        "p",
        { class: "wrong", role: "alert" },
        "The service does not take this token. Check it and try again.",
      ),
    element(
      "p",
      { id: "token-hint", class: "soft" },
      "It is the one that the service was started with. It stays in this tab and is gone when you close it.",
    ),
    element("div", { class: "field" }, element("label", { for: "token" }, "Token"), field),
    element(
      "div",
      { class: "actions" },
      element("button", { class: "button button-main", type: "submit" }, "Use token"),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    given = field.value.trim();
    dialog.close();
  });
  const { dialog, closed } = openDialog({ title: "This needs a token", content: [form] });
  field.focus();
  await closed;
  return given;
}
