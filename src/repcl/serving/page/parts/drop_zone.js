/** A place for a file: dropped, chosen, or its rows pasted. */

import { element, icon } from "./element.js";

/**
 * @param {(source: File | string) => void} take
 * @returns {HTMLElement}
 */
export function makeDropZone(take) {
  const input = element("input", {
    type: "file",
    id: "file",
    class: "spoken",
    accept: ".csv,.tsv,.txt,.jsonl,.json,.ndjson,text/csv,application/json",
  });
  const name = element(
    "p",
    { class: "soft", role: "status" },
    "CSV with commas, semicolons or tabs, or JSON lines. The first line names the columns.",
  );
  const pasted = element("textarea", { id: "rows", rows: 3, dir: "auto", placeholder: "text\tlabel\n…" });
  const zone = element(
    "div",
    { class: "drop" },
    icon("file"),
    element(
      "p",
      {},
      element("label", { for: "file", class: "button" }, "Choose a file"),
      element("span", { class: "drop-or" }, " or drop it here"),
    ),
    input,
    name,
  );
  const takeFile = (/** @type {File | undefined} */ file) => {
    if (!file) return;
    name.textContent = file.name;
    pasted.value = "";
    take(file);
  };
  input.addEventListener("change", () => {
    takeFile(input.files?.[0]);
    input.value = "";
  });
  listenToDrops(zone, takeFile);
  pasted.addEventListener("input", () => pasted.value.trim() && take(pasted.value));
  return element(
    "div",
    { class: "stack stack-tight" },
    zone,
    element(
      "div",
      { class: "field" },
      element("label", { for: "rows" }, "Or paste rows from a spreadsheet"),
      pasted,
    ),
  );
}

/**
 * @param {HTMLElement} zone
 * @param {(file: File | undefined) => void} take
 */
function listenToDrops(zone, take) {
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("is-over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("is-over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("is-over");
    take(event.dataTransfer?.files[0]);
  });
}
