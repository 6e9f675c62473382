/** Which view is shown: the part of the address after `#/`, so that back, reload and links work. */

/**
 * @typedef {object} Visit
 * @property {string[]} path What follows the view's name in the address.
 * @property {AbortSignal} signal Fires when the visitor leaves; requests and listeners of the view end with it.
 *
 * @typedef {object} View
 * @property {string} title
 * @property {string} [section] The entry of the navigation that it belongs to, where that is another view.
 * @property {(visit: Visit) => Promise<Node> | Node} build
 */

import { failure, loading } from "./parts/notice.js";

/**
 * Show views as the address changes.
 * @param {Record<string, View>} views
 * @param {HTMLElement} place
 * @returns {() => void} Shows the present view anew.
 */
export function startRouter(views, place) {
  let leaving = new AbortController();
  let isFirst = true;

  async function show() {
    leaving.abort();
    leaving = new AbortController();
    const { signal } = leaving;
    const [name, ...path] = parts();
    const known = Object.hasOwn(views, name) ? name : "try";
    const view = views[known];
    markCurrent(view.section ?? known);
    document.title = `${view.title} · repcl`;
    const waiting = setTimeout(() => place.replaceChildren(loading()), 150);
    const built = await attempt(() => view.build({ path, signal }), show);
    clearTimeout(waiting);
    if (signal.aborted) return;
    place.replaceChildren(built);
    arrive(place, isFirst);
    isFirst = false;
  }

  addEventListener("hashchange", show);
  show();
  return show;
}

/** @returns {string[]} */
function parts() {
  const words = location.hash.replace(/^#\/?/, "").split("/");
  return words.map((word) => {
    try {
      return decodeURIComponent(word);
    } catch {
      return word;
    }
  });
}

/**
 * @param {() => Promise<Node> | Node} build
 * @param {() => void} again
 */
async function attempt(build, again) {
  try {
    return await build();
  } catch (problem) {
    return failure(problem, again);
  }
}

/** @param {string} name */
function markCurrent(name) {
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link instanceof HTMLElement && link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/**
 * Start at the top; screen readers hear the heading, except on the first visit, where they read the page anyway.
 * @param {HTMLElement} place
 * @param {boolean} isFirst
 */
function arrive(place, isFirst) {
  scrollTo(0, 0);
  const heading = place.querySelector("h1");
  if (!heading || isFirst) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

/** @param {string} address such as `/teach` */
export function go(address) {
  location.hash = address;
}
