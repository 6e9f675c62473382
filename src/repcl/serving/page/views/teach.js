/** Bring texts, look at them row by row, and have them learned. */

import { clearDraft, draft } from "../data/draft.js";
import { SPANS, checkLines, checkRows, guessChoice } from "../data/examples.js";
import { counted } from "../data/format.js";
import { readFile, readTable } from "../data/table_file.js";
import { makeDropZone } from "../parts/drop_zone.js";
import { element } from "../parts/element.js";
import { notice, problemNotice } from "../parts/notice.js";
import { makePreview } from "../parts/preview.js";
import { makeSwitch } from "../parts/switch.js";
import { go } from "../router.js";
import { getClasses, getJobs, learn } from "../service/api.js";
import { isOver } from "../service/jobs.js";
import { currentModel, whyReadOnly } from "../service/model.js";

/** @import { Visit } from "../router.js" */
/** @import { Example, Model } from "../types.js" */
/** @import { Table } from "../data/table_file.js" */
/** @import { Checked } from "../data/examples.js" */

export const title = "Teach";

/** @param {Visit} visit */
export async function build({ signal }) {
  const model = await currentModel();
  const readOnly = whyReadOnly(model);
  const head = element(
    "header",
    { class: "head" },
    element("h1", {}, "Teach new texts"),
    element("p", { class: "lead" }, "Ten texts are a good start for a class. A class that is known already learns more.", model.multilabel && " A text may have several classes: write | between them."),
  );
  if (readOnly) return element("div", { class: "stack" }, head, notice("plain", "Nothing can be taught here", element("p", {}, readOnly)));
  const [known, open] = await Promise.all([knownLabels(signal), openJob(signal)]);
  const preview = makePreview(known, model.multilabel);
  const teaching = makeTeaching(preview.node, model.limits.examples_per_request);
  const show = (/** @type {Checked[]} */ checked) => {
    preview.update(checked);
    teaching.update(checked.flatMap(({ example }) => example ?? []));
  };
  const file = fileSource(model, show);
  const ways = [{ name: "A file or table", node: file.node, chosen: file.show }];
  if (model.kind === "sentence") {
    const lines = linesSource(model, known, show);
    ways.unshift({ name: "Lines of one class", node: lines.node, chosen: lines.show });
  }
  return element("div", { class: "stack" }, head, open, makeSwitch("How you bring texts", ways), teaching.node);
}

/** @param {AbortSignal} signal */
async function knownLabels(signal) {
  return new Set((await getClasses(signal)).classes.map(({ label }) => label));
}

/**
 * A word about a job that still runs or waits for a decision.
 * @param {AbortSignal} signal
 */
async function openJob(signal) {
  const job = (await getJobs(signal)).find((one) => !isOver(one) || one.state === "refused");
  if (!job) return null;
  const isWaiting = job.state === "refused";
  return notice(
    isWaiting ? "warning" : "plain",
    isWaiting ? "An update waits for your decision" : "Something is being learned",
    element("p", {}, element("a", { href: `#/jobs/${encodeURIComponent(job.id)}` }, isWaiting ? "See what it would change" : "Watch it")),
  );
}

/**
 * Texts of one class, one a line.
 * @param {Model} model
 * @param {Set<string>} known
 * @param {(checked: Checked[]) => void} show
 */
function linesSource(model, known, show) {
  const label = element("input", { id: "label", list: "known-labels", autocomplete: "off", dir: "auto", placeholder: "such as gift_card_balance" });
  const lines = element("textarea", { id: "lines", rows: 8, dir: "auto", placeholder: "how much is left on my gift card\nwhat's the balance of my voucher\n…" });
  const list = element("datalist", { id: "known-labels" }, ...[...known].map((name) => element("option", { value: name })));
  label.value = draft.label;
  lines.value = draft.lines;
  const changed = () => {
    draft.label = label.value;
    draft.lines = lines.value;
    show(checkLines(label.value, lines.value, model.limits));
  };
  label.addEventListener("input", changed);
  lines.addEventListener("input", changed);
  const node = element(
    "div",
    { class: "stack stack-tight" },
    element("div", { class: "field" }, element("label", { for: "label" }, "Class"), label, list),
    element("div", { class: "field" }, element("label", { for: "lines" }, "Texts, one a line"), lines),
  );
  return { node, show: changed };
}

/**
 * A file or pasted rows with a header; which column is which can be chosen.
 * @param {Model} model
 * @param {(checked: Checked[]) => void} show
 */
function fileSource(model, show) {
  /** @type {Table | null} */
  let table = null;
  const below = element("div", { class: "stack stack-tight" });
  const zone = makeDropZone((source) => take(source));

  /** @param {File | string} source */
  async function take(source) {
    try {
      table = typeof source === "string" ? readTable(source) : await readFile(source, model.limits.body_bytes);
      choose(table);
    } catch (problem) {
      table = null;
      below.replaceChildren(notice("bad", "This cannot be read", element("p", {}, problem instanceof Error ? problem.message : String(problem))));
      show([]);
    }
  }

  /** @param {Table} read */
  function choose(read) {
    const choice = guessChoice(read.columns, model.kind);
    const changed = () => show(checkRows(read.rows, choice, model.kind, model.limits));
    const fields = ["text", "label", ...SPANS[model.kind]].map((role) =>
      columnField(role, read.columns, choice[role], (column) => {
        choice[role] = column;
        changed();
      }),
    );
    below.replaceChildren(element("div", { class: "columns" }, ...fields), read.note ? notice("warning", "Look twice", element("p", {}, read.note)) : "");
    changed();
  }

  return {
    node: element("div", { class: "stack stack-tight" }, zone, below),
    show: () => (table ? choose(table) : show([])),
  };
}

/**
 * @param {string} role
 * @param {string[]} columns
 * @param {string} chosen
 * @param {(column: string) => void} changed
 */
function columnField(role, columns, chosen, changed) {
  const names = /** @type {Record<string, string>} */ ({ text: "Text is in", label: "Class is in" });
  const select = element("select", { id: `column-${role}`, on: { change: (event) => changed(event.currentTarget.value) } }, ...columns.map((column) => element("option", { value: column }, column)));
  select.value = chosen;
  return element("div", { class: "field" }, element("label", { for: `column-${role}` }, names[role] ?? `${role} is in`), select);
}

/**
 * The preview and the button under it, which says what it will do.
 * @param {HTMLElement} preview
 * @param {number} most Texts that the service takes at once.
 */
function makeTeaching(preview, most) {
  /** @type {Example[]} */
  let examples = [];
  const trouble = element("div", {});
  const button = element("button", { class: "button button-main button-large", type: "button", on: { click: teach } });
  const node = element("div", { class: "stack stack-tight" }, preview, trouble, element("div", { class: "actions actions-start" }, button));

  async function teach() {
    button.disabled = true;
    trouble.replaceChildren();
    try {
      const job = await learn(examples);
      clearDraft();
      go(`/jobs/${encodeURIComponent(job.id)}`);
    } catch (problem) {
      trouble.replaceChildren(problemNotice(problem));
      button.disabled = false;
    }
  }

  /** @param {Example[]} now */
  function update(now) {
    examples = now;
    button.disabled = !now.length || now.length > most;
    trouble.replaceChildren(
      now.length > most ? notice("warning", "Too many at once", element("p", {}, `This service takes ${counted(most, "text")} at once: divide the file, or use repcl learn.`)) : "",
    );
    button.textContent = now.length ? `Teach ${counted(now.length, "text")}` : "Teach";
  }

  return { node, update };
}
