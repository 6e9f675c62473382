/** One job: its progress, then what it did, then the decision. */

import { element } from "../parts/element.js";
import { problemNotice, speak, toast } from "../parts/notice.js";
import { outcome } from "../parts/outcome.js";
import { makeProgress } from "../parts/progress.js";
import { watchInDialog } from "../parts/job_dialog.js";
import { go } from "../router.js";
import { decide, getHistory, getJob, rollBack } from "../service/api.js";
import { STATES, followJob, isOver } from "../service/jobs.js";
import { refreshModel } from "../service/model.js";

/** @import { Visit } from "../router.js" */
/** @import { Job } from "../types.js" */

export const title = "Teach";
export const section = "teach";

const RUNNING = {
  learn: "Teaching",
  rename: "Renaming a class",
  merge: "Merging classes",
  remove: "Removing a class",
  rollback: "Rolling back",
};

/** @param {Visit} visit */
export async function build({ path, signal }) {
  const job = await getJob(path[0] ?? "", signal);
  const place = element("div", { class: "stack" });
  const watching = watch(job, place, signal);
  if (isOver(job)) await watching;
  return place;
}

/** @param {Job} job */
function heading(job) {
  const name = isOver(job)
    ? job.state === "refused"
      ? "What it would change"
      : "What changed"
    : RUNNING[job.action];
  return element("header", { class: "head" }, element("h1", { tabindex: -1 }, name));
}

/**
 * @param {Job} job
 * @param {HTMLElement} place
 * @param {AbortSignal} signal
 */
async function watch(job, place, signal) {
  try {
    if (!isOver(job)) {
      const progress = makeProgress(job);
      place.replaceChildren(heading(job), progress.node);
      job = await followJob(job, progress.update, signal);
      speak(STATES[job.state]);
    }
    const isInUse = job.state === "done" && (await answersNow(job));
    place.replaceChildren(heading(job), outcome(job, isInUse), choices(job, isInUse, place, signal));
  } catch (problem) {
    if (!signal.aborted) place.replaceChildren(heading(job), problemNotice(problem));
  }
}

/**
 * Whether its revision is the one in use; it was when the job was done, so a service that does not say is no reason
 * to doubt it.
 * @param {Job} job
 */
async function answersNow(job) {
  return refreshModel().then(
    ({ revision }) => revision === job.revision,
    () => true,
  );
}

/**
 * @param {Job} job
 * @param {boolean} isInUse
 * @param {HTMLElement} place
 * @param {AbortSignal} signal
 */
function choices(job, isInUse, place, signal) {
  const trouble = element("div", {});
  const act = (/** @type {() => Promise<void>} */ doing) => async (/** @type {Event} */ event) => {
    const button = /** @type {HTMLButtonElement} */ (event.currentTarget);
    button.disabled = true;
    trouble.replaceChildren();
    try {
      await doing();
    } catch (problem) {
      trouble.replaceChildren(problemNotice(problem));
    }
    button.disabled = false;
  };
  const settle = (/** @type {"accept" | "discard"} */ decision) =>
    act(async () => watch(await decide(job.id, decision), place, signal));
  const takeBack = act(async () => {
    if (!(await undo(job))) await watch(job, place, signal);
  });
  return element(
    "div",
    { class: "stack stack-tight" },
    trouble,
    element("div", { class: "actions actions-start decision" }, ...buttons(job, isInUse, settle, takeBack)),
  );
}

/**
 * @param {Job} job
 * @param {boolean} isInUse
 * @param {(decision: "accept" | "discard") => (event: Event) => void} settle
 * @param {(event: Event) => void} takeBack
 */
function buttons(job, isInUse, settle, takeBack) {
  if (job.state === "refused") {
    return [
      element(
        "button",
        { class: "button button-main", type: "button", on: { click: settle("discard") } },
        "Discard it",
      ),
      element(
        "button",
        { class: "button", type: "button", on: { click: settle("accept") } },
        "Accept it all the same",
      ),
    ];
  }
  if (job.state === "done" && !isInUse) {
    return [element("a", { class: "button", href: "#/history" }, "See the history")];
  }
  if (job.state === "done" && job.action !== "rollback") {
    return [
      element("a", { class: "button button-main", href: "#/try" }, "Keep it and try it"),
      element("button", { class: "button", type: "button", on: { click: takeBack } }, "Undo"),
    ];
  }
  return [element("a", { class: "button", href: "#/teach" }, "Back to Teach")];
}

/**
 * Go back to the revision that this one was made from.
 * @param {Job} job
 * @returns {Promise<boolean>} Whether that was done.
 */
async function undo(job) {
  const { current, revisions } = await getHistory();
  const own = revisions.find(({ number }) => number === job.revision);
  if (!own || current !== own.number) {
    toast("Another revision is in use by now.");
    return false;
  }
  if (own.parent === null) {
    toast("This is the first revision: there is nothing to go back to.");
    return false;
  }
  if (!(await watchInDialog(await rollBack(own.parent), `Going back to revision ${own.parent}`)))
    return false;
  go("/history");
  return true;
}
