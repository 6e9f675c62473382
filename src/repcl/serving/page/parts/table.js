/** A table that can be sorted by its headers and grows by pages. */

import { amount } from "../data/format.js";
import { element } from "./element.js";

/** @import { Child } from "./element.js" */

const PAGE = 100;

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} name
 * @property {(row: Row) => Child | Child[]} cell
 * @property {(row: Row) => string | number | null} [order] What rows are sorted by; without it they are not.
 * @property {boolean} [isNumber]
 * @property {boolean} [isMinor] Left out on phones.
 * @property {boolean} [isHead] Names its row.
 * @property {boolean} [isName] Holds a class's name, which gets room even beside long texts.
 */

/**
 * @template Row
 * @param {object} options
 * @param {string} options.caption For screen readers.
 * @param {Column<Row>[]} options.columns
 * @param {Row[]} options.rows
 * @param {(row: Row) => string} [options.kindOf] A class name for a row.
 * @returns {{node: HTMLElement, update: (rows: Row[]) => void}}
 */
export function makeTable({ caption, columns, rows, kindOf }) {
  /** @type {{column: Column<Row> | null, isDescending: boolean}} */
  const sorting = { column: null, isDescending: false };
  let all = rows;
  let shown = PAGE;
  const body = element("tbody");
  const heads = columns.map((column) => head(column, () => sortBy(column)));
  const more = element("button", {
    class: "button more",
    type: "button",
    on: { click: () => fill((shown += PAGE)) },
  });

  /** @param {Column<Row>} column */
  function sortBy(column) {
    sorting.isDescending = sorting.column === column ? !sorting.isDescending : false;
    sorting.column = column;
    heads.forEach((cell, index) => {
      if (columns[index] === column)
        cell.setAttribute("aria-sort", sorting.isDescending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    fill(shown);
  }

  /** @param {number} most */
  function fill(most) {
    const ordered = sorted(all, sorting.column, sorting.isDescending);
    body.replaceChildren(...ordered.slice(0, most).map((row) => line(columns, row, kindOf)));
    more.hidden = all.length <= most;
    more.textContent = `Show more (${amount(Math.max(0, all.length - most))} left)`;
  }

  /** @param {Row[]} next */
  function update(next) {
    all = next;
    shown = PAGE;
    fill(shown);
  }

  fill(shown);
  const table = element(
    "table",
    {},
    element("caption", { class: "spoken" }, caption),
    element("thead", {}, element("tr", {}, ...heads)),
    body,
  );
  return { node: element("div", { class: "table" }, table, more), update };
}

/**
 * @template Row
 * @param {Column<Row>} column
 * @param {() => void} sort
 */
function head(column, sort) {
  const name = column.order
    ? element("button", { class: "sorter", type: "button", on: { click: sort } }, column.name)
    : column.name;
  return element("th", { scope: "col", class: kinds(column) }, name);
}

/**
 * @template Row
 * @param {Column<Row>[]} columns
 * @param {Row} row
 * @param {(row: Row) => string} [kindOf]
 */
function line(columns, row, kindOf) {
  const cells = columns.map((column) => {
    const content = [column.cell(row)].flat();
    return column.isHead
      ? element("th", { scope: "row", class: kinds(column) }, ...content)
      : element("td", { class: kinds(column) }, ...content);
  });
  return element("tr", { class: kindOf?.(row) || null }, ...cells);
}

/** @param {Column<any>} column */
function kinds(column) {
  return (
    [column.isNumber && "number", column.isMinor && "minor", column.isName && "name"]
      .filter(Boolean)
      .join(" ") || null
  );
}

/**
 * @template Row
 * @param {Row[]} rows
 * @param {Column<Row> | null} column
 * @param {boolean} isDescending
 */
function sorted(rows, column, isDescending) {
  const order = column?.order;
  if (!order) return rows;
  const sign = isDescending ? -1 : 1;
  return [...rows].sort((one, other) => sign * compare(order(one), order(other)));
}

/**
 * What is not known comes last.
 * @param {string | number | null} one
 * @param {string | number | null} other
 */
function compare(one, other) {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}
