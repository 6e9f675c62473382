/** The model in use, looked at again every few seconds: another revision may come from elsewhere. */

import { getModel } from "./api.js";

/** @import { Model } from "../types.js" */

const SECONDS_BETWEEN = 4;

/** @type {Model | null} */
let model = null;
/** @type {Promise<Model> | null} */
let first = null;
/** @type {((now: Model, before: Model | null) => void)[]} */
const listeners = [];

/** @returns {Promise<Model>} the model as last seen */
export async function currentModel() {
  if (model) return model;
  first ??= refreshModel().finally(() => {
    first = null;
  });
  return first;
}

/**
 * @param {{asksForToken?: boolean}} [options] Whether a visitor who has no token is asked for it.
 * @returns {Promise<Model>} the model as it is now
 */
export async function refreshModel({ asksForToken = true } = {}) {
  const before = model;
  const now = await getModel(asksForToken);
  model = now;
  if (JSON.stringify(now) !== JSON.stringify(before)) for (const listener of listeners) listener(now, before);
  return now;
}

/** @param {(now: Model, before: Model | null) => void} listener */
export function onModel(listener) {
  listeners.push(listener);
}

/** Look again and again, as long as the page is seen. */
export function watchModel() {
  setInterval(() => {
    if (document.visibilityState === "visible" && model)
      refreshModel({ asksForToken: false }).catch(() => {});
  }, SECONDS_BETWEEN * 1000);
}

/**
 * Why nothing can be changed here, as a sentence; empty where it can.
 * @param {Model} seen
 */
export function whyReadOnly(seen) {
  return seen.can_write ? "" : seen.why_not || "This service only answers. Changes are made elsewhere.";
}
