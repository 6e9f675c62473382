/** Makes elements. Text is only ever set as text, so that nothing a user wrote can become markup. */

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, (event: any) => unknown>} Listeners
 * @typedef {Record<string, string | number | boolean | null | undefined | Listeners>} Attributes
 */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes] `on` holds listeners by event; `true` sets an attribute, `false` and null leave it out.
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  dress(made, attributes);
  made.append(...present(children));
  return made;
}

/**
 * The same for drawings.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 */
export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  dress(made, attributes);
  made.append(...present(children));
  return made;
}

/**
 * Words that users wrote. `bdi` keeps right-to-left words and hidden marks from turning what stands around them.
 * @param {string} text
 * @param {string} [kind] a class name
 */
export function words(text, kind = "words") {
  return element("bdi", { class: kind }, ...breakable(text));
}

/**
 * Names such as `track_order` break behind their marks, not within a word.
 * @param {string} text
 * @returns {Child[]}
 */
function breakable(text) {
  if (/\s/.test(text)) return [text];
  return text.split(/(?<=[_.:/-])/).flatMap((part, index) => (index ? [element("wbr"), part] : [part]));
}

/** @param {string} name of a symbol in index.html */
export function icon(name) {
  return drawn("svg", { "aria-hidden": "true", class: "icon" }, drawn("use", { href: `#icon-${name}` }));
}

/**
 * Let style sheets know a share, such as the length of a bar.
 * @template {HTMLElement | SVGElement} Styled
 * @param {Styled} styled
 * @param {number} share from 0 to 1
 * @returns {Styled}
 */
export function withShare(styled, share) {
  styled.style.setProperty("--share", String(Math.min(1, Math.max(0, share))));
  return styled;
}

/**
 * @param {Element} made
 * @param {Attributes} attributes
 */
function dress(made, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "object") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function present(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}
