/** Follows a short job in a dialog that closes by itself, unless it failed or the guard advises against it. */

import { followJob } from "../service/jobs.js";
import { openDialog } from "./dialog.js";
import { problemNotice, toast } from "./notice.js";
import { verdict } from "./outcome.js";
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
    if (last.state === "done" && !last.summary?.reasons?.length) {
      dialog.close();
      toast([last.summary?.sentence ?? "Done.", ...(last.summary?.notes ?? [])].join(" "));
      return true;
    }
    body.replaceChildren(verdict(last, true));
    await closed;
    return last.state === "done";
  } catch (problem) {
    if (!leaving.signal.aborted) body.replaceChildren(problemNotice(problem));
  }
  await closed;
  return false;
}
