/** The curve of accuracy over revisions, drawn to the width of its place. */

import { percent } from "../data/format.js";
import { drawn, element } from "./element.js";

/**
 * @typedef {object} Point
 * @property {number} number of the revision
 * @property {number} share
 * @property {boolean} isCurrent
 * @property {boolean} isRefused
 */

const HEIGHT = 220;
const MARGIN = { top: 16, right: 20, bottom: 30, left: 44 };

/**
 * @param {Point[]} points by number
 * @param {AbortSignal} signal Ends the watching of the width.
 * @returns {HTMLElement}
 */
export function makeChart(points, signal) {
  const place = element("figure", { class: "chart" });
  const watcher = new ResizeObserver(([entry]) => {
    if (entry.contentRect.width) place.replaceChildren(draw(points, Math.round(entry.contentRect.width)));
  });
  watcher.observe(place);
  signal.addEventListener("abort", () => watcher.disconnect());
  return place;
}

/**
 * @param {Point[]} points
 * @param {number} width
 */
function draw(points, width) {
  const lowest = axisStart(points);
  const first = points[0].number;
  const last = points[points.length - 1].number;
  const x = (/** @type {number} */ number) =>
    last === first
      ? width / 2
      : MARGIN.left + ((number - first) / (last - first)) * (width - MARGIN.left - MARGIN.right);
  const y = (/** @type {number} */ share) =>
    MARGIN.top + ((1 - share) / (1 - lowest)) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const used = points.filter((point) => !point.isRefused);
  return drawn(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": inWords(used) },
    ...levels(lowest).map((share) => grid(share, y(share), width)),
    ...ticks(points, width).map((number) =>
      drawn("text", { class: "tick", x: x(number), y: HEIGHT - 8, "text-anchor": "middle" }, number),
    ),
    area(used, x, y),
    drawn("path", { class: "curve", d: path(used, x, y) }),
    ...points.map((point) => dot(point, x(point.number), y(point.share))),
  );
}

/**
 * The axis begins at a round tenth below the lowest value, so that changes can be seen.
 * @param {Point[]} points
 */
function axisStart(points) {
  const lowest = Math.min(...points.map((point) => point.share));
  return Math.max(0, Math.min(0.8, Math.floor(lowest * 10 - 0.5) / 10));
}

/** @param {number} lowest */
function levels(lowest) {
  return [0, 1, 2].map((step) => lowest + ((1 - lowest) * step) / 2);
}

/**
 * @param {number} share
 * @param {number} height
 * @param {number} width
 */
function grid(share, height, width) {
  return drawn(
    "g",
    {},
    drawn("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: height, y2: height }),
    drawn(
      "text",
      { class: "tick", x: MARGIN.left - 10, y: height + 4, "text-anchor": "end" },
      percent(share),
    ),
  );
}

/**
 * The numbers of revisions, as many as there is room for.
 * @param {Point[]} points
 * @param {number} width
 */
function ticks(points, width) {
  const every = Math.ceil((points.length * 44) / (width - MARGIN.left - MARGIN.right));
  return points.filter((_, index) => (points.length - 1 - index) % every === 0).map((point) => point.number);
}

/**
 * @param {Point[]} points
 * @param {(number: number) => number} x
 * @param {(share: number) => number} y
 */
function path(points, x, y) {
  return points.map((point, index) => `${index ? "L" : "M"}${x(point.number)} ${y(point.share)}`).join("");
}

/**
 * @param {Point[]} points
 * @param {(number: number) => number} x
 * @param {(share: number) => number} y
 */
function area(points, x, y) {
  if (points.length < 2) return null;
  const floor = HEIGHT - MARGIN.bottom;
  const ends = `L${x(points[points.length - 1].number)} ${floor}L${x(points[0].number)} ${floor}Z`;
  return drawn("path", { class: "area", d: path(points, x, y) + ends });
}

/**
 * @param {Point} point
 * @param {number} x
 * @param {number} y
 */
function dot(point, x, y) {
  const kind = point.isCurrent ? "dot is-current" : point.isRefused ? "dot is-refused" : "dot";
  const name = `Revision ${point.number}: ${percent(point.share)}${point.isRefused ? ", refused" : ""}`;
  return drawn("circle", { class: kind, cx: x, cy: y, r: point.isCurrent ? 6 : 4 }, drawn("title", {}, name));
}

/** @param {Point[]} points */
function inWords(points) {
  const said = points.map((point) => `revision ${point.number} ${percent(point.share)}`);
  return `Accuracy by revision: ${said.join(", ")}.`;
}
