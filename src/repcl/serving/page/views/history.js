/** How the model became what it is, revision by revision, and the way back. */

import { counted, percent, when } from "../data/format.js";
import { makeChart } from "../parts/chart.js";
import { confirmDialog } from "../parts/dialog.js";
import { element } from "../parts/element.js";
import { watchInDialog } from "../parts/job_dialog.js";
import { empty, showAnew } from "../parts/notice.js";
import { getHistory, rollBack } from "../service/api.js";
import { currentModel, whyReadOnly } from "../service/model.js";

/** @import { Visit } from "../router.js" */
/** @import { Job, Revision } from "../types.js" */

export const title = "History";

/** @param {Visit} visit */
export async function build({ signal }) {
  const place = element("div", { class: "stack" });

  async function show() {
    const [model, { revisions }] = await Promise.all([currentModel(), getHistory(signal)]);
    const reload = () => showAnew(place, show, signal);
    place.replaceChildren(...content(revisions, !whyReadOnly(model), signal, reload));
  }

  await show();
  return place;
}

/**
 * @param {Revision[]} revisions
 * @param {boolean} canWrite
 * @param {AbortSignal} signal
 * @param {() => void} reload
 */
function content(revisions, canWrite, signal, reload) {
  const head = element(
    "header",
    { class: "head" },
    element("h1", {}, "History"),
    element("p", { class: "lead" }, "Every change is a revision. Any of them can be used again."),
  );
  if (!revisions.length) return [head, empty("history", "No revisions yet")];
  const byNumber = [...revisions].sort((one, other) => one.number - other.number);
  const newestFirst = [...byNumber].reverse();
  const items = newestFirst.map((revision) => timelineItem(revision, canWrite, reload));
  return [
    head,
    curve(byNumber, signal),
    element("ol", { class: "timeline", reversed: true }, ...items),
  ].filter((part) => part !== null);
}

/**
 * @param {Revision[]} revisions
 * @param {AbortSignal} signal
 */
function curve(revisions, signal) {
  const points = revisions.flatMap((revision) =>
    revision.accuracy === null
      ? []
      : [
          {
            number: revision.number,
            share: revision.accuracy,
            isCurrent: revision.is_current,
            isRefused: wasNeverUsed(revision),
          },
        ],
  );
  if (!points.length) return null;
  return element(
    "section",
    { class: "card", "aria-label": "Accuracy by revision" },
    element("h2", { class: "chart-title" }, "Accuracy on texts it had not learned"),
    makeChart(points, signal),
  );
}

/**
 * Whether the guard refused it and nobody used it all the same.
 * @param {Revision} revision
 */
function wasNeverUsed(revision) {
  return revision.is_refused && !revision.is_accepted;
}

/**
 * @param {Revision} revision
 * @param {boolean} canWrite
 * @param {() => void} reload
 */
function timelineItem(revision, canWrite, reload) {
  const facts = [
    when(revision.when),
    counted(revision.classes, "class"),
    revision.accuracy !== null && `${percent(revision.accuracy)} right`,
  ];
  const back = element(
    "button",
    { class: "button button-small", type: "button", on: { click: () => goBack(revision, reload) } },
    "Roll back",
    element("span", { class: "spoken" }, ` to revision ${revision.number}`),
  );
  return element(
    "li",
    { class: revision.is_current ? "revision is-current" : "revision" },
    element(
      "div",
      { class: "revision-words" },
      element(
        "h2",
        {},
        `Revision ${revision.number}`,
        revision.is_current && element("span", { class: "chip chip-accent" }, "In use"),
        revision.is_refused &&
          element(
            "span",
            { class: "chip chip-warning" },
            revision.is_accepted ? "Refused, then accepted" : "Refused",
          ),
      ),
      element("p", {}, revision.sentence),
      element("p", { class: "soft" }, facts.filter(Boolean).join(" · ")),
    ),
    canWrite && !revision.is_current && !wasNeverUsed(revision) && back,
  );
}

/**
 * @param {Revision} revision
 * @param {() => void} reload
 */
async function goBack(revision, reload) {
  /** @type {Job | null} */
  let job = null;
  await confirmDialog({
    title: `Roll back to revision ${revision.number}?`,
    content: [
      element("p", {}, `Answers come from revision ${revision.number} then: ${revision.sentence}`),
      element(
        "p",
        { class: "soft" },
        "Nothing is deleted. Later revisions stay here, and you can return to them.",
      ),
    ],
    action: "Roll back",
    act: async () => {
      job = await rollBack(revision.number);
    },
  });
  if (job && (await watchInDialog(job, "Rolling back"))) reload();
}
