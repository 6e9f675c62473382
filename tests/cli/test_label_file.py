"""Files to be labeled by hand."""

import csv
import io

from repcl.cli.label_file import label_table
from repcl.data import Example, Span
from repcl.data.files import read_examples


def test_plain_texts_have_two_columns():
    table = label_table([Example("a, b", ""), Example("two\nlines", "")], ["", "group-1"])
    assert list(csv.reader(io.StringIO(table))) == [
        ["text", "label"],
        ["a, b", ""],
        ["two\nlines", "group-1"],
    ]


def test_marked_spans_can_be_read_again(tmp_path):
    examples = [Example("Anna lives in Paris", "x", head=Span(0, 4), tail=Span(14, 19))]
    path = tmp_path / "relations.csv"
    path.write_text(label_table(examples, ["lives_in"]), newline="")
    (found,) = read_examples(path)
    assert (found.head, found.tail, found.label) == (Span(0, 4), Span(14, 19), "lives_in")
