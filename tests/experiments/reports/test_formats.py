"""Tables as Markdown, LaTeX and CSV, and the words in their cells."""

import csv

from repcl.experiments.reports.formats import to_csv, to_latex, to_markdown
from repcl.experiments.reports.table import Cell, Column, Table, duration, file_name, word


def nasty() -> Table:
    rows = [[word("a_b & 5 % <x> {y} \\z|"), Cell("1.0 ± 0.5", (1.0, 0.5), is_best=True)]]
    more = [[word("=SUM(A1)"), Cell("–", (None, None))]]
    columns = [Column("class", is_text=True), Column("accuracy", ("accuracy", "accuracy sd"))]
    return Table("nasty", "50 % of a_b & c", columns, [rows, more], ["100 % sure"])


def test_latex_escapes_and_uses_booktabs():
    text = to_latex(nasty())
    assert r"a\_b \& 5 \% \textless{}x\textgreater{} \{y\} \textbackslash{}z\textbar{}" in text
    assert r"\textbf{1.0 $\pm$ 0.5} \\" in text
    assert r"\caption{50 \% of a\_b \& c. 100 \% sure}" in text
    assert text.count(r"\midrule") == 2
    assert [text.count(rule) for rule in (r"\toprule", r"\bottomrule", r"\begin{tabular}{lr}")] == [1, 1, 1]


def test_markdown_escapes_and_keeps_one_line_a_row():
    lines = to_markdown(nasty()).splitlines()
    assert r"| a_b &amp; 5 % &lt;x&gt; {y} \\z\| | **1.0 ± 0.5** |" in lines
    assert "| --- | ---: |" in lines
    assert lines[-1] == "100 % sure"


def test_csv_holds_bare_numbers_and_no_formulas():
    rows = list(csv.reader(to_csv(nasty()).splitlines()))
    assert rows[0] == ["class", "accuracy", "accuracy sd"]
    assert rows[1][1:] == ["1", "0.5"]
    assert rows[2] == ["'=SUM(A1)", "", ""]


def test_durations_have_the_unit_that_people_use():
    assert [duration(s) for s in (0.25, 42, 119, 150, 7200)] == ["0.2 s", "42 s", "119 s", "2.5 min", "2.0 h"]


def test_hostile_names_cannot_leave_the_folder():
    assert file_name("../../etc/passwd-results") == "..%2f..%2fetc%2fpasswd-results"
    assert file_name("a b") != file_name("a-b") != file_name("a%20b")


def test_the_name_of_a_file_fits_whatever_the_data_is_called():
    names = {file_name(text) for text in (" " * 200, " " * 199, "ü" * 100 + " " * 100, "a" * 300, "b" * 300)}
    assert len(names) == 5
    assert max(len(name.encode()) for name in names) <= 200
    assert file_name("results-" + "a" * 192) == "results-" + "a" * 192
