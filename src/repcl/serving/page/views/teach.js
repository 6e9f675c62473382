/** Bring texts, look at them row by row, and have them learned. */

import { clearDraft } from "../data/draft.js";
import { counted } from "../data/format.js";
import { element } from "../parts/element.js";
import { makeFileSource } from "../parts/file_source.js";
import { makeLinesSource } from "../parts/lines_source.js";
import { notice, problemNotice } from "../parts/notice.js";
import { makePreview } from "../parts/preview.js";
import { makeSwitch } from "../parts/switch.js";
import { go } from "../router.js";
import { getClasses, getJobs, learn } from "../service/api.js";
import { isOver } from "../service/jobs.js";
import { currentModel, whyReadOnly } from "../service/model.js";

/** @import { Visit } from "../router.js" */
/** @import { Example } from "../types.js" */
/** @import { Checked } from "../data/examples.js" */

export const title = "Teach";

/** @param {Visit} visit */
export async function build({ signal }) {
  const model = await currentModel();
  const readOnly = whyReadOnly(model);
  const head = element(
    "header",
    { class: "head" },
    element("h1", {}, "Teach new texts"),
    element(
      "p",
      { class: "lead" },
      "Ten texts are a good start for a class. A class that is known already learns more.",
      model.multilabel && " A text may have several classes: write | between them.",
    ),
  );
  if (readOnly)
    return element(
      "div",
      { class: "stack" },
      head,
      notice("plain", "Nothing can be taught here", element("p", {}, readOnly)),
    );
  const [known, open] = await Promise.all([knownLabels(signal), openJob(signal)]);
  const preview = makePreview(known, model.multilabel);
  const teaching = makeTeaching(preview.node, model.limits.examples_per_request);
  const show = (/** @type {Checked[]} */ checked) => {
    preview.update(checked);
    teaching.update(checked.flatMap(({ example }) => example ?? []));
  };
  const file = makeFileSource(model, show);
  const ways = [{ name: "A file or table", node: file.node, chosen: file.show }];
  if (model.kind === "sentence") {
    const lines = makeLinesSource(model, known, show);
    ways.unshift({ name: "Lines of one class", node: lines.node, chosen: lines.show });
  }
  return element(
    "div",
    { class: "stack" },
    head,
    open,
    makeSwitch("How you bring texts", ways),
    teaching.node,
  );
}

/** @param {AbortSignal} signal */
async function knownLabels(signal) {
  return new Set((await getClasses(signal)).classes.map(({ label }) => label));
}

/**
 * A word about a job that still runs or waits for a decision.
 * @param {AbortSignal} signal
 */
async function openJob(signal) {
  const job = (await getJobs(signal)).find((one) => !isOver(one) || one.state === "refused");
  if (!job) return null;
  const isWaiting = job.state === "refused";
  return notice(
    isWaiting ? "warning" : "plain",
    isWaiting ? "An update waits for your decision" : "Something is being learned",
    element(
      "p",
      {},
      element(
        "a",
        { href: `#/jobs/${encodeURIComponent(job.id)}` },
        isWaiting ? "See what it would change" : "Watch it",
      ),
    ),
  );
}

/**
 * The preview and the button under it, which says what it will do.
 * @param {HTMLElement} preview
 * @param {number} most Texts that the service takes at once.
 */
function makeTeaching(preview, most) {
  /** @type {Example[]} */
  let examples = [];
  const trouble = element("div", {});
  const button = element("button", {
    class: "button button-main button-large",
    type: "button",
    on: { click: teach },
  });
  const node = element(
    "div",
    { class: "stack stack-tight" },
    preview,
    trouble,
    element("div", { class: "actions actions-start" }, button),
  );

  async function teach() {
    button.disabled = true;
    trouble.replaceChildren();
    try {
      const job = await learn(examples);
      clearDraft();
      go(`/jobs/${encodeURIComponent(job.id)}`);
    } catch (problem) {
      trouble.replaceChildren(problemNotice(problem));
      button.disabled = false;
    }
  }

  /** @param {Example[]} now */
  function update(now) {
    examples = now;
    button.disabled = !now.length || now.length > most;
    trouble.replaceChildren(
      now.length > most
        ? notice(
            "warning",
            "Too many at once",
            element(
              "p",
              {},
              `This service takes ${counted(most, "text")} at once: divide the file, or use repcl learn.`,
            ),
          )
        : "",
    );
    button.textContent = now.length ? `Teach ${counted(now.length, "text")}` : "Teach";
  }

  return { node, update };
}
