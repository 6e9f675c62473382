"""A user's data file: what is read, and what is said about a row that cannot be read."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from repcl.data.examples import Example, Span
from repcl.data.files import input_kind, read_examples
from repcl.errors import InvalidData


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_csv_rows_become_examples_with_text_and_label(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text,label\n"Hello, you",greet\nBye,part\n')
    assert read_examples(path) == [Example("Hello, you", "greet"), Example("Bye", "part")]


def test_a_path_may_be_given_as_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label\nHello,greet\n")
    assert read_examples(str(path)) == [Example("Hello", "greet")]


def test_tab_separated_rows_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "text\tlabel\nHello, you\tgreet\n")
    assert read_examples(path) == [Example("Hello, you", "greet")]


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,question,topic\n1,Hello,greet\n")
    assert read_examples(path, text_column="question", label_column="topic") == [Example("Hello", "greet")]


def test_a_byte_order_mark_is_not_part_of_the_first_column(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label\nHello,greet\n".encode("utf-8-sig"))
    assert read_examples(path) == [Example("Hello", "greet")]


def test_a_byte_order_mark_is_not_part_of_the_first_json_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "Hello", "label": "greet"}'.encode("utf-8-sig"))
    assert read_examples(path) == [Example("Hello", "greet")]


def test_texts_keep_line_breaks_quotes_and_unicode(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text,label\r\n"Größe ""XL""\n👟 日本",size\r\n')
    assert read_examples(path) == [Example('Größe "XL"\n👟 日本', "size")]


def test_blank_lines_are_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label\n\nHello,greet\n\n")
    assert len(read_examples(path)) == 1
    path = write(tmp_path / "a.jsonl", '\n{"text": "Hello", "label": "greet"}\n\n')
    assert len(read_examples(path)) == 1


def test_number_labels_become_their_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "a", "label": 3}\n{"text": "b", "label": 0}\n')
    assert [example.label for example in read_examples(path)] == ["3", "0"]


def test_examples_of_a_class_share_one_label_object(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label\nHello,greet\nHi,greet\n")
    first, second = read_examples(path)
    assert first.label is second.label


def test_a_text_of_two_hundred_thousand_characters_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", f"text,label\n{'word ' * 40_000},long\n")
    assert len(read_examples(path)[0].text) == 200_000


def test_head_and_tail_columns_make_relations(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text,label,head,tail\nAnn met Bo,met,"[0, 3]","[8, 10]"\n')
    example = read_examples(path)[0]
    assert (example.head, example.tail, input_kind(example)) == (Span(0, 3), Span(8, 10), "relation")


def test_a_trigger_column_makes_events(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "They fought", "label": "war", "trigger": [5, 11]}\n')
    example = read_examples(path)[0]
    assert (example.trigger, input_kind(example)) == (Span(5, 11), "event")


def test_spans_may_touch_both_ends_overlap_and_stand_in_any_order(tmp_path: Path) -> None:
    row = {"text": "äöü日本", "label": "x", "head": [3, 5], "tail": [0, 5]}
    path = write(tmp_path / "a.jsonl", json.dumps(row))
    assert read_examples(path)[0].tail == Span(0, 5)


def test_parquet_is_read_with_spans_numbers_and_unread_columns(tmp_path: Path) -> None:
    table = pa.table({"text": ["They fought"], "label": [7], "trigger": [[5, 11]], "more": [object.__name__]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read_examples(tmp_path / "a.parquet") == [Example("They fought", "7", trigger=Span(5, 11))]


def test_empty_row_groups_of_parquet_are_passed_over(tmp_path: Path) -> None:
    table = pa.table({"text": ["They fought"], "label": ["war"]})
    with pq.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        for rows in (table.slice(0, 0), table, table.slice(0, 0)):
            writer.write_table(rows)
    assert read_examples(tmp_path / "a.parquet") == [Example("They fought", "war")]


def test_parquet_without_rows_is_refused_as_that(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["Hi"], "label": ["x"]}).slice(0, 0), tmp_path / "a.parquet")
    with pytest.raises(InvalidData, match="has no data rows"):
        read_examples(tmp_path / "a.parquet")


def test_parquet_may_hold_views_of_texts(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array(["They fought"], pa.string_view()), "label": ["war"]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read_examples(tmp_path / "a.parquet") == [Example("They fought", "war")]


def test_all_formats_hold_the_same_examples(tmp_path: Path) -> None:
    rows = [{"text": f"text {number}", "label": f"class {number % 3}"} for number in range(10_000)]
    write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["text", "label"])
        writer.writeheader()
        writer.writerows(rows)
    read = [read_examples(tmp_path / f"a.{ending}") for ending in ("csv", "jsonl", "parquet")]
    assert read[0] == read[1] == read[2]
    assert len(read[0]) == 10_000


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"There is no file .*nowhere\.csv: check the spelling"):
        read_examples(tmp_path / "nowhere.csv")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"is a folder: give the path of one data file \(\.csv"):
        read_examples(tmp_path)


def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xls", "text,label\n")
    with pytest.raises(InvalidData, match=r"ends in '\.xls'.*\.csv, \.tsv, \.jsonl, \.parquet, \.xlsx"):
        read_examples(path)


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"a\.csv is empty"):
        read_examples(write(tmp_path / "a.csv", ""))


@pytest.mark.parametrize(("name", "content"), [("a.csv", "text,label\n"), ("a.jsonl", "\n\n")])
def test_a_file_without_rows_is_refused(tmp_path: Path, name: str, content: str) -> None:
    with pytest.raises(InvalidData, match="has no data rows"):
        read_examples(write(tmp_path / name, content))


def test_a_missing_column_is_named_with_the_columns_found(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "sentence,label\nHello,greet\n")
    with pytest.raises(InvalidData, match=r"no column 'text' \(columns found: 'sentence', 'label'\)"):
        read_examples(path)


def test_a_missing_parquet_column_is_named_with_the_columns_found(tmp_path: Path) -> None:
    pq.write_table(pa.table({"sentence": ["Hello"], "topic": ["greet"]}), tmp_path / "a.parquet")
    with pytest.raises(
        InvalidData, match=r"no column 'text' and no column 'label' \(columns found: 'sentence', 'topic'\)"
    ):
        read_examples(tmp_path / "a.parquet")


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_text_is_named_by_file_row_column_and_value(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "a.csv", f"text,label\nHello,greet\n{text},greet\n")
    with pytest.raises(
        InvalidData, match=rf"a\.csv, row 2 \(line 3\), column 'text': expected a text .* '{text}'"
    ):
        read_examples(path)


@pytest.mark.parametrize("label", ["null", '""', '" "', "NaN", '"nan"', "[1]"])
def test_a_missing_label_is_refused(tmp_path: Path, label: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"text": "Hello", "label": {label}}}\n')
    with pytest.raises(InvalidData, match=r"row 1, column 'label': expected a label"):
        read_examples(path)


def test_a_row_with_too_few_cells_has_no_label(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label\nHello\n")
    with pytest.raises(InvalidData, match=r"row 1 \(line 2\), column 'label'"):
        read_examples(path)


def test_a_row_with_too_many_cells_asks_for_quotes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label\nHello, you,greet\n")
    with pytest.raises(InvalidData, match=r"row 1 has 3 cells where the header names 2 .* in quotes"):
        read_examples(path)


def test_a_quote_that_is_never_closed_does_not_swallow_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text,label\nHello,greet\n"Bye,part\nHi,greet\n')
    with pytest.raises(InvalidData, match=r"row 2 .*is not well-formed CSV"):
        read_examples(path)


def test_a_broken_json_line_is_named_by_number_and_content(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "Hello", "label": "greet"}\n{"text": "Bye"\n')
    with pytest.raises(
        InvalidData, match=r"a\.jsonl, line 2 is not valid JSON .*found '\{\"text\": \"Bye\"'"
    ):
        read_examples(path)


def test_a_json_line_that_is_no_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"line 1 holds \['Hello', 'greet'\] where a JSON object"):
        read_examples(write(tmp_path / "a.jsonl", '["Hello", "greet"]\n'))


def test_half_a_surrogate_pair_is_not_a_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "Hi \\ud83d", "label": "greet"}\n')
    with pytest.raises(InvalidData, match="expected valid Unicode"):
        read_examples(path)


@pytest.mark.parametrize("span", ["[-1, 2]", "[0, 6]", "[3, 3]", "[4, 2]"])
def test_a_span_outside_the_text_or_empty_is_refused(tmp_path: Path, span: str) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"text": "Hello", "label": "x", "trigger": {span}}}\n')
    with pytest.raises(InvalidData, match=r"column 'trigger': expected 0 <= start < end <= 5"):
        read_examples(path)


@pytest.mark.parametrize("span", ["[1]", "[0, 1, 2]", "0-4", '{"start": 0}', "[0.0, 1.0]", "[true, 2]", ""])
def test_a_span_that_is_no_pair_of_whole_numbers_is_refused(tmp_path: Path, span: str) -> None:
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label", "trigger"], ["Hello", "x", span]])
    with pytest.raises(InvalidData, match=r"column 'trigger': expected a pair \[start, end\]"):
        read_examples(tmp_path / "a.csv")


def test_a_head_without_a_tail_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text,label,head\nHello,x,"[0, 1]"\n')
    with pytest.raises(InvalidData, match="has a column 'head' but no column 'tail'"):
        read_examples(path)


def test_a_json_row_that_lacks_its_span_is_named(tmp_path: Path) -> None:
    rows = '{"text": "Hello", "label": "x", "trigger": [0, 1]}\n{"text": "Bye", "label": "x"}\n'
    with pytest.raises(InvalidData, match="row 2 has no column 'trigger'"):
        read_examples(write(tmp_path / "a.jsonl", rows))


def test_a_json_row_with_a_span_that_the_first_row_lacks_is_named(tmp_path: Path) -> None:
    rows = '{"text": "Bye", "label": "x"}\n{"text": "Hello", "label": "x", "trigger": [0, 1]}\n'
    with pytest.raises(InvalidData, match="row 2 has 'trigger', the first row does not"):
        read_examples(write(tmp_path / "a.jsonl", rows))


def test_a_json_row_may_say_that_it_has_no_span(tmp_path: Path) -> None:
    rows = '{"text": "Bye", "label": "x"}\n{"text": "Hello", "label": "x", "trigger": null}\n'
    assert [one.trigger for one in read_examples(write(tmp_path / "a.jsonl", rows))] == [None, None]


def test_columns_of_relations_and_events_together_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'text,label,head,tail,trigger\nHi,x,"[0, 1]","[1, 2]","[0, 2]"\n')
    with pytest.raises(InvalidData, match="has the columns head, tail, trigger"):
        read_examples(path)


def test_a_file_that_is_not_parquet_inside_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match="cannot be read as Parquet"):
        read_examples(write(tmp_path / "a.parquet", "text,label\n"))


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.parquet", "anything")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "repcl.data.parquet_rows", raising=False)
    with pytest.raises(InvalidData, match=r"pip install 'repcl\[parquet\]'"):
        read_examples(path)


def test_long_values_are_cut_in_messages(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "Hello", "label": "x", "trigger": "' + "a" * 5000 + '"}\n')
    with pytest.raises(InvalidData) as caught:
        read_examples(path)
    assert len(str(caught.value)) < 400


MEASURE = """
import sys
from repcl.data.files import read_examples

def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024

before = peak()
examples = read_examples(sys.argv[1])
after = peak()
print(len(examples), after - before, sum(sys.getsizeof(example.text) for example in examples))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from Linux's /proc")
@pytest.mark.parametrize("rows", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_rows_are_never_held_twice(
    rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "many.csv"
    with path.open("w") as file:
        file.write("text,label\n")
        file.writelines(f"{row:07d} {'some words ' * 10},class {row % 50}\n" for row in range(rows))
    command = [sys.executable, "-c", MEASURE, str(path)]
    read, peak, texts = map(int, subprocess.run(command, capture_output=True, check=True).stdout.split())
    with capsys.disabled():
        print(f"\n{rows:,} rows: peak {peak / 1e6:.0f} MB, of which texts {texts / 1e6:.0f} MB")  # noqa: T201
    assert read == rows
    example_and_its_place_in_the_list = 72 + 16
    assert peak < texts + rows * example_and_its_place_in_the_list + texts / 3
