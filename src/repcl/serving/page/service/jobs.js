/** Follows a job until it is over, through lost connections. */

import { Problem, getJob, jobEvents } from "./api.js";
import { refreshModel } from "./model.js";

/** @import { Job, State } from "../types.js" */

const PAUSE = 1000;

/** @type {Record<State, string>} */
export const STATES = {
  queued: "Waiting for its turn",
  running: "Running",
  refused: "Refused",
  done: "Done",
  failed: "Failed",
  canceled: "Canceled",
  lost: "Lost",
  discarded: "Discarded",
};

/** @param {Job} job */
export function isOver(job) {
  return job.state !== "queued" && job.state !== "running";
}

/**
 * @param {Job} job
 * @param {(job: Job) => void} show Called with each state.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Job>} the job when it is over
 */
export async function followJob(job, show, signal) {
  let last = job;
  show(last);
  while (!isOver(last)) {
    try {
      for await (const next of jobEvents(last.id, signal)) {
        show((last = next));
        if (isOver(last)) break; // the service goes on after a refusal, until someone decides
      }
    } catch (problem) {
      if (signal?.aborted || isFinal(problem)) throw problem;
    }
    if (!isOver(last)) {
      await pause(PAUSE, signal);
      show((last = await askAgain(last, signal)));
    }
  }
  await refreshModel().catch(() => {});
  return last;
}

/**
 * The job as it is now, where its events cannot be had; as it was, if that cannot be had either.
 * @param {Job} job
 * @param {AbortSignal} [signal]
 */
async function askAgain(job, signal) {
  try {
    return await getJob(job.id, signal);
  } catch (problem) {
    if (signal?.aborted || isFinal(problem)) throw problem;
    return job;
  }
}

/**
 * Whether asking again would bring the same: the service answered, and not that it is busy.
 * @param {unknown} problem
 */
function isFinal(problem) {
  return problem instanceof Problem && problem.status >= 400 && problem.status < 500;
}

/**
 * @param {number} milliseconds
 * @param {AbortSignal} [signal]
 */
function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
