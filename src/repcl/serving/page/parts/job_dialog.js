/** Follows a short job in a dialog that closes by itself when all went well. */

import { followJob } from "../service/jobs.js";
import { go } from "../router.js";
import { openDialog } from "./dialog.js";
import { element } from "./element.js";
import { notice, problemNotice, toast } from "./notice.js";
import { makeProgress } from "./progress.js";

/** @import { Job } from "../types.js" */

/**
 * @param {Job} job
 * @param {string} title
 * @returns {Promise<boolean>} Whether it was done.
 */
export async function watchInDialog(job, title) {
  const progress = makeProgress(job);
  const leaving = new AbortController();
  const { dialog, body, closed } = openDialog({ title, content: [progress.node] });
  closed.then(() => leaving.abort());
  try {
    const last = await followJob(job, progress.update, leaving.signal);
    if (last.state === "refused") go(`/jobs/${last.id}`);
    if (last.state === "done" || last.state === "refused") {
      dialog.close();
      if (last.state === "done") toast(last.summary?.sentence ?? "Done.");
      return last.state === "done";
    }
    body.replaceChildren(
      notice(
        "bad",
        last.problem?.title ?? "Not done",
        element("p", {}, last.problem?.detail || "Nothing was changed."),
      ),
    );
  } catch (problem) {
    if (!leaving.signal.aborted) body.replaceChildren(problemNotice(problem));
  }
  await closed;
  return false;
}
