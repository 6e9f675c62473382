/** Two or more ways to do the same thing, of which one is shown. */

import { element } from "./element.js";

/** @typedef {{name: string, node: HTMLElement, chosen: () => void}} Way */

/**
 * @param {string} name
 * @param {Way[]} ways the first is shown at the beginning
 */
export function makeSwitch(name, ways) {
  const place = element("div", {});
  const choose = (/** @type {Way} */ way) => {
    place.replaceChildren(way.node);
    way.chosen();
  };
  const choices = ways.map((way, index) =>
    element(
      "label",
      { class: "switch-choice" },
      element("input", {
        type: "radio",
        name: "way",
        checked: index === 0,
        on: { change: () => choose(way) },
      }),
      element("span", {}, way.name),
    ),
  );
  choose(ways[0]);
  return element(
    "div",
    { class: "stack stack-tight" },
    ways.length > 1 &&
      element("fieldset", { class: "switch" }, element("legend", { class: "spoken" }, name), ...choices),
    place,
  );
}
