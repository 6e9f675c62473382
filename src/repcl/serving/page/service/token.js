/** The token that writes need: kept for this tab only, never in a cookie. */

const KEPT_AS = "repcl-token";
const SENDABLE = /^[!-~]+$/;

/** The token as long as the page lasts, where the browser forbids storage. */
let remembered = "";

/** @type {(isWrong: boolean) => Promise<string | null>} */
let ask = async () => null;
/** @type {Promise<boolean> | null} */
let asking = null;

/** @returns {string} empty where there is none */
export function token() {
  try {
    return sessionStorage.getItem(KEPT_AS) ?? remembered;
  } catch {
    return remembered;
  }
}

/** @param {string} given */
export function keepToken(given) {
  remembered = given;
  try {
    sessionStorage.setItem(KEPT_AS, given);
  } catch {
    // a browser may forbid storage; the token then lasts as long as the page
  }
}

/**
 * Whether a request can carry it, as it can carry every token that a service takes.
 * @param {string} given
 */
export function isSendable(given) {
  return SENDABLE.test(given);
}

/**
 * Say how a visitor is asked for the token.
 * @param {(isWrong: boolean) => Promise<string | null>} way
 */
export function askForTokenWith(way) {
  ask = way;
}

/**
 * Ask for a token; requests that are refused together ask once.
 * @param {string} used The token that was refused.
 * @returns {Promise<boolean>} Whether there is another one now.
 */
export function replaceToken(used) {
  if (token() !== used) return Promise.resolve(true);
  asking ??= ask(used !== "").then((given) => {
    asking = null;
    if (given) keepToken(given);
    return Boolean(given);
  });
  return asking;
}
