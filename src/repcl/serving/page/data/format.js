/** Numbers and times as people read them. */

/** @param {number | null | undefined} share */
export function percent(share) {
  return share === null || share === undefined ? "–" : `${floorToHonest(share)}%`;
}

/**
 * 100% is said of all and 0% of none, never of nearly.
 * @param {number} share
 */
function floorToHonest(share) {
  const rounded = Math.round(share * 100);
  if (rounded === 100 && share < 1) return 99;
  return rounded === 0 && share > 0 ? "<1" : rounded;
}

/**
 * @param {number} number
 * @param {string} noun
 */
export function counted(number, noun) {
  const plural = noun.endsWith("ss") ? `${noun}es` : `${noun}s`;
  return `${amount(number)} ${number === 1 ? noun : plural}`;
}

/** @param {number} number */
export function amount(number) {
  return number.toLocaleString("en-US");
}

/** @param {string} moment ISO time */
export function when(moment) {
  return written(moment, { dateStyle: "medium", timeStyle: "short" });
}

/** @param {string} moment ISO time */
export function day(moment) {
  return written(moment, { month: "short", day: "numeric" });
}

/**
 * @param {string} moment
 * @param {Intl.DateTimeFormatOptions} options
 */
function written(moment, options) {
  const date = new Date(moment);
  return Number.isNaN(date.getTime()) ? moment : date.toLocaleString("en-US", options);
}

/** @param {number | null | undefined} seconds */
export function timeLeft(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 1) return "nearly done";
  if (seconds < 90) return `about ${Math.ceil(seconds)} s left`;
  return `about ${Math.round(seconds / 60)} min left`;
}

/**
 * The change of a share, in points.
 * @param {number | null} before
 * @param {number | null} after
 */
export function change(before, after) {
  if (before === null || after === null) return "";
  const points = Math.round((after - before) * 100);
  if (points === 0) return "no change";
  return `${points > 0 ? "+" : "−"}${Math.abs(points)} ${Math.abs(points) === 1 ? "point" : "points"}`;
}
