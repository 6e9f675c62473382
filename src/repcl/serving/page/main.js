/** Starts the page: views, the model's name, and the notes that stand above every view. */

import { element } from "./parts/element.js";
import { speak } from "./parts/notice.js";
import { askForToken } from "./parts/token_dialog.js";
import { startRouter } from "./router.js";
import { onConnection } from "./service/connection.js";
import { onModel, refreshModel, watchModel, whyReadOnly } from "./service/model.js";
import { askForTokenWith, keepToken, token } from "./service/token.js";
import { bindThemeButton } from "./theme.js";
import * as classes from "./views/classes.js";
import * as history from "./views/history.js";
import * as job from "./views/job.js";
import * as review from "./views/review.js";
import * as teach from "./views/teach.js";
import * as tries from "./views/try.js";

/** @import { Model } from "./types.js" */

const served = byId("served");
const strips = byId("strips");
const tokenButton = byId("token-button");
const lost = element(
  "p",
  { class: "strip strip-bad", role: "alert" },
  "The connection to the service is lost. Trying again …",
);
const readOnly = element("p", { class: "strip", role: "note" });

askForTokenWith(askForToken);
bindThemeButton(byId("theme-button"));
byId("skip").addEventListener("click", skipToContent);
onConnection((isConnected) => (isConnected ? lost.remove() : strips.prepend(lost)));
onModel(showModel);
const showView = startRouter({ try: tries, teach, jobs: job, classes, review, history }, byId("page"));
tokenButton.addEventListener("click", changeToken);
refreshModel().catch(() => {});
watchModel();

/**
 * @param {Model} now
 * @param {Model | null} before
 */
function showModel(now, before) {
  served.replaceChildren(
    element("bdi", { class: "served-name" }, now.name),
    element("span", { class: "served-revision" }, `revision ${now.revision}`),
  );
  tokenButton.hidden = !now.needs_token && !now.can_write;
  showReadOnly(now);
  if (before && before.revision !== now.revision) speak(`Revision ${now.revision} answers now.`);
}

/** @param {Model} model */
function showReadOnly(model) {
  const why = whyReadOnly(model);
  readOnly.replaceChildren(element("strong", {}, "Read-only. "), why);
  if (why) strips.append(readOnly);
  else readOnly.remove();
}

/**
 * Go to the content without the address, which says what is shown.
 * @param {Event} event
 */
function skipToContent(event) {
  event.preventDefault();
  byId("view").focus();
}

async function changeToken() {
  const given = await askForToken(false);
  if (!given || given === token()) return;
  keepToken(given);
  await refreshModel().catch(() => {});
  showView();
}

/** @param {string} id */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element ${id}.`);
  return found;
}
