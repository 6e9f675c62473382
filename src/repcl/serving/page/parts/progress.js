/** A job on its way: stage, bar, time left, cancel. */

import { amount, timeLeft } from "../data/format.js";
import { decide } from "../service/api.js";
import { STATES } from "../service/jobs.js";
import { element, withShare } from "./element.js";
import { inWords, toast } from "./notice.js";

/** @import { Job } from "../types.js" */

const TITLES = {
  learn: "Learning",
  rename: "Renaming",
  merge: "Merging",
  remove: "Removing",
  rollback: "Rolling back",
};

/**
 * @param {Job} job
 * @returns {{node: HTMLElement, update: (job: Job) => void}}
 */
export function makeProgress(job) {
  const stage = element("p", { class: "stage" });
  const left = element("p", { class: "left soft" });
  const fill = element("span", { class: "progress-fill" });
  const track = element(
    "div",
    {
      class: "progress",
      role: "progressbar",
      "aria-label": TITLES[job.action],
      "aria-valuemin": 0,
      "aria-valuemax": 100,
    },
    fill,
  );
  const cancel = element(
    "button",
    { class: "button", type: "button", on: { click: (event) => cancelJob(job.id, event.currentTarget) } },
    "Cancel",
  );

  /** @param {Job} now */
  function update(now) {
    const { done = 0, total = 0, seconds_left = null } = now.progress ?? {};
    stage.textContent = now.state === "queued" ? STATES.queued : stageOf(now);
    left.textContent = [total > 1 && `${amount(done)} of ${amount(total)}`, timeLeft(seconds_left)]
      .filter(Boolean)
      .join(" · ");
    track.classList.toggle("is-open-ended", !total);
    if (total) track.setAttribute("aria-valuenow", String(Math.round((100 * done) / total)));
    else track.removeAttribute("aria-valuenow");
    withShare(fill, total ? done / total : 0.3);
  }

  update(job);
  const node = element(
    "section",
    { class: "card progress-card", "aria-label": "Progress" },
    element("div", { class: "progress-words" }, stage, left),
    track,
    element("p", { class: "soft" }, "Answers keep coming from the revision before, until this is done."),
    element("div", { class: "actions actions-start" }, cancel),
  );
  return { node, update };
}

/** @param {Job} job */
function stageOf(job) {
  const stage = job.progress?.stage;
  return stage ? stage[0].toUpperCase() + stage.slice(1) : TITLES[job.action];
}

/**
 * @param {string} id
 * @param {HTMLButtonElement} button
 */
async function cancelJob(id, button) {
  button.disabled = true;
  try {
    await decide(id, "cancel");
  } catch (problem) {
    button.disabled = false;
    toast(inWords(problem));
  }
}
