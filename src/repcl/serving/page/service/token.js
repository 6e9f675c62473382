/** The token that writes need: kept for this tab only, never in a cookie. */

const KEPT_AS = "repcl-token";

/** @type {(isWrong: boolean) => Promise<string | null>} */
let ask = async () => null;
/** @type {Promise<boolean> | null} */
let asking = null;

/** @returns {string} empty where there is none */
export function token() {
  return sessionStorage.getItem(KEPT_AS) ?? "";
}

/** @param {string | null} given */
export function keepToken(given) {
  if (given) sessionStorage.setItem(KEPT_AS, given);
  else sessionStorage.removeItem(KEPT_AS);
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
