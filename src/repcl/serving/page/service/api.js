/** The service under `/v1`: one function for each route; what goes wrong is a `Problem` with a sentence. */

import { answered, notAnswered } from "./connection.js";
import { readEvents } from "./events.js";
import { replaceToken, token } from "./token.js";

/** @import * as T from "../types.js" */

const BASE = new URL("v1/", document.baseURI);

/** What the service said, or what we say when it says nothing. */
export class Problem extends Error {
  /**
   * @param {string} title
   * @param {string} detail
   * @param {number} status 0 where there was no answer.
   * @param {{location: string, message: string}[]} [errors]
   */
  constructor(title, detail, status, errors = []) {
    super(detail || title);
    this.title = title;
    this.detail = detail;
    this.status = status;
    this.errors = errors;
  }
}

/**
 * @param {string} path
 * @param {{body?: unknown, signal?: AbortSignal, asksForToken?: boolean}} [options] With a body it is a POST.
 * @returns {Promise<Response>}
 */
async function request(path, options = {}) {
  const { body, signal, asksForToken = true } = options;
  const used = token();
  const response = await send(path, body, used, signal);
  if (response.status === 401 && asksForToken && (await replaceToken(used))) return request(path, options);
  if (!response.ok) throw await problemOf(response);
  return response;
}

/**
 * @param {string} path
 * @param {unknown} body
 * @param {string} used
 * @param {AbortSignal} [signal]
 */
async function send(path, body, used, signal) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (used) headers.Authorization = `Bearer ${used}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    const response = await fetch(new URL(path, BASE), {
      method: body === undefined ? "GET" : "POST",
      body: body === undefined ? undefined : JSON.stringify(body),
      headers,
      signal,
      cache: "no-store",
      credentials: "omit",
    });
    answered();
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    notAnswered();
    throw new Problem(
      "No connection",
      "The service does not answer. Start it again, or check the network.",
      0,
    );
  }
}

/** @param {Response} response */
async function problemOf(response) {
  try {
    const said = await response.json();
    return new Problem(said.title, said.detail ?? "", response.status, said.errors ?? []);
  } catch {
    return new Problem("The service failed", `It answered with status ${response.status}.`, response.status);
  }
}

/**
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
async function get(path, signal) {
  return (await request(path, { signal })).json();
}

/**
 * @param {string} path
 * @param {unknown} body
 * @param {AbortSignal} [signal]
 */
async function post(path, body, signal) {
  return (await request(path, { body, signal })).json();
}

/** @type {(asksForToken: boolean) => Promise<T.Model>} */
export const getModel = async (asksForToken) => (await request("model", { asksForToken })).json();

/**
 * What is tried here is half typed and asked by whoever looks at the model: it is not kept for review.
 * @type {(texts: (string | T.Asked)[], top: number, nearest: number, signal?: AbortSignal) => Promise<{revision: number, predictions: T.Prediction[]}>}
 */
export const predict = (texts, top, nearest, signal) =>
  post("predict", { texts, top, nearest, collect: false }, signal);

/** @type {(examples: T.Example[], collected?: string[]) => Promise<T.Job>} */
export const learn = (examples, collected) =>
  post("learn", collected?.length ? { examples, collected } : { examples });

/** @type {(signal?: AbortSignal) => Promise<T.Job[]>} */
export const getJobs = async (signal) => (await get("jobs", signal)).jobs;

/** @type {(id: string, signal?: AbortSignal) => Promise<T.Job>} */
export const getJob = (id, signal) => get(`jobs/${encodeURIComponent(id)}`, signal);

/** @type {(id: string, decision: "cancel" | "accept" | "discard") => Promise<T.Job>} */
export const decide = (id, decision) => post(`jobs/${encodeURIComponent(id)}/${decision}`, {});

/**
 * States of a job as they come; ends when the service ends the stream.
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {AsyncGenerator<T.Job>}
 */
export async function* jobEvents(id, signal) {
  const response = await request(`jobs/${encodeURIComponent(id)}/events`, { signal });
  for await (const event of readEvents(response)) if (event.name === "job") yield JSON.parse(event.data);
}

/** @type {(signal?: AbortSignal) => Promise<{revision: number, classes: T.ClassRow[]}>} */
export const getClasses = (signal) => get("classes", signal);

/** @type {(label: string, signal?: AbortSignal) => Promise<{label: string, texts: string[]}>} */
export const getKeptTexts = (label, signal) => get(`classes/texts?${new URLSearchParams({ label })}`, signal);

/** @type {(old: string, renamed: string) => Promise<T.Job>} */
export const renameClass = (old, renamed) => post("classes/rename", { old, new: renamed });

/** @type {(labels: string[], into: string) => Promise<T.Job>} */
export const mergeClasses = (labels, into) => post("classes/merge", { labels, into });

/** @type {(label: string, purge: boolean) => Promise<T.Job>} */
export const removeClass = (label, purge) => post("classes/remove", { label, purge });

/** @type {(signal?: AbortSignal) => Promise<{current: number, revisions: T.Revision[]}>} */
export const getHistory = (signal) => get("history", signal);

/** @type {(revision: number) => Promise<T.Job>} */
export const rollBack = (revision) => post("rollback", { revision });

/** @type {(signal?: AbortSignal) => Promise<T.Unknown>} */
export const getUnknown = (signal) => get("unknown", signal);

/** @type {(ids: string[]) => Promise<{erased: number, total: number}>} */
export const eraseUnknown = (ids) => post("unknown/erase", { ids });
