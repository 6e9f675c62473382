// Lets readers sort a table by a column: each heading becomes a button. Without scripts the table is as written.
(() => {
  const valueOf = (row, index, isText) => {
    const text = row.cells[index].textContent.trim();
    if (isText) return text;
    const number = parseFloat(text.replace(/,/g, "").replace("\u2212", "-"));
    return Number.isNaN(number) ? null : number;
  };

  const compare = (first, second, sign) => {
    if (first === null || second === null) return (first === null) - (second === null); // a dash stands last
    return sign * (typeof first === "string" ? first.localeCompare(second) : first - second);
  };

  const sort = (table, heading) => {
    const isText = heading.classList.contains("text");
    const wasDown = heading.getAttribute("aria-sort") === "descending";
    const wasUp = heading.getAttribute("aria-sort") === "ascending";
    const sign = (isText ? wasUp : !wasDown) ? -1 : 1; // words from a, numbers from the largest
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
    for (const body of table.tBodies) {
      const rows = [...body.rows].map((row) => [valueOf(row, heading.cellIndex, isText), row]);
      rows.sort(([first], [second]) => compare(first, second, sign));
      body.append(...rows.map(([, row]) => row));
    }
  };

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    for (const heading of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, heading));
    }
  }
})();
