"""Predictions: what they answer, and their file."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from repcl.errors import RepclError, ResultMismatch
from repcl.evaluation import TestedExample, fraction_correct, read_predictions, write_predictions

EXAMPLE = TestedExample("refund-7", task=1, label="refund", predicted=("refund", None, "greeting"))


def test_the_first_prediction_is_the_one_after_the_own_task() -> None:
    assert EXAMPLE.predicted_after(1) == "refund"
    assert EXAMPLE.predicted_after(3) == "greeting"


def test_there_is_no_prediction_before_the_own_task() -> None:
    assert EXAMPLE.predicted_after(0) is None


def test_asking_beyond_the_last_prediction_says_where_they_end() -> None:
    with pytest.raises(RepclError, match=r"'refund-7' after task 4, found none after task 3\. Score as many"):
        EXAMPLE.predicted_after(4)


def test_accuracy_counts_only_what_was_evaluated() -> None:
    tested = [
        EXAMPLE,
        TestedExample("a", 0, "greeting", ("greeting", "greeting", "refund", "refund")),
        TestedExample("b", 0, "greeting", ("refund", "refund", "greeting", "greeting")),
    ]
    assert fraction_correct(tested, after=0) == pytest.approx(1 / 2)
    assert fraction_correct(tested, after=1) == pytest.approx(2 / 3)
    assert fraction_correct(tested, after=2) == pytest.approx(1 / 2)
    assert fraction_correct([EXAMPLE], after=2) is None


def test_predictions_survive_their_file(tmp_path: Path) -> None:
    tested = [EXAMPLE, TestedExample("ü\u2028\n", 0, '"Gruß"\t✓', ("a", None, "b", '"Gruß"\t✓'))]
    write_predictions(tmp_path / "predictions.jsonl", tested)
    assert read_predictions(tmp_path / "predictions.jsonl") == tested


def test_the_file_holds_one_plain_json_row_per_example(tmp_path: Path) -> None:
    write_predictions(tmp_path / "predictions.jsonl", [EXAMPLE])
    assert (tmp_path / "predictions.jsonl").read_text(encoding="utf-8") == (
        '{"id": "refund-7", "task": 1, "label": "refund", "predicted": ["refund", null, "greeting"]}\n'
    )


def test_the_file_can_be_read_by_people_who_write_other_letters(tmp_path: Path) -> None:
    write_predictions(tmp_path / "predictions.jsonl", [TestedExample("a", 0, "Gruß", ("挨拶",))])
    text = (tmp_path / "predictions.jsonl").read_text(encoding="utf-8")
    assert text == '{"id": "a", "task": 0, "label": "Gruß", "predicted": ["挨拶"]}\n'


def test_a_packed_file_holds_the_same_rows_and_the_same_bytes_whenever_it_is_written(tmp_path: Path) -> None:
    for name in ("predictions.jsonl", "a.jsonl.gz", "b.jsonl.gz"):
        write_predictions(tmp_path / name, [EXAMPLE] * 3)
    packed = (tmp_path / "a.jsonl.gz").read_bytes()
    assert packed[4:8] == bytes(4)  # where gzip would write the time
    assert packed == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "predictions.jsonl").read_bytes()
    assert read_predictions(tmp_path / "a.jsonl.gz") == [EXAMPLE] * 3


@pytest.mark.parametrize(
    "damage", [lambda packed: packed[:-9], lambda _: b"no gzip", lambda packed: packed[:20]]
)
def test_a_damaged_packed_file_is_an_error(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "predictions.jsonl.gz"
    write_predictions(path, [EXAMPLE] * 3)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ResultMismatch, match=r"packed by gzip in .*, found a damaged file\. Run the"):
        read_predictions(path)


def test_a_file_of_more_bytes_than_any_run_has_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_predictions(tmp_path / "predictions.jsonl.gz", [EXAMPLE] * 3)
    monkeypatch.setattr("repcl.evaluation.predictions.MOST_BYTES", 200)
    with pytest.raises(ResultMismatch, match="at most 200 bytes"):
        read_predictions(tmp_path / "predictions.jsonl.gz")


def test_of_a_broken_line_the_first_hundred_characters_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text("x" * 101)
    with pytest.raises(RepclError, match=f"found '{'x' * 100}'"):
        read_predictions(path)


@pytest.mark.parametrize(
    "broken",
    [
        b'{"id": "refund-8", "task": 1, "la',
        b'{"id": "refund-8", "task": "1", "label": "refund", "predicted": ["refund"]}',
        b'{"id": "refund-8", "task": -1, "label": "refund", "predicted": ["refund"]}',
        b'{"id": "refund-8", "task": 1, "label": "refund", "predicted": [3]}',
        b'{"id": "refund-8", "task": 1, "label": "refund", "predicted": []}',
        b'{"id": "refund-8", "task": 1, "label": "refund"}',
        b"[]",
        b"",
        b"\xff\xfe",
    ],
)
def test_a_broken_line_is_named_with_what_was_expected(tmp_path: Path, broken: bytes) -> None:
    path = tmp_path / "predictions.jsonl"
    write_predictions(path, [EXAMPLE])
    path.write_bytes(path.read_bytes() + broken + b"\n")
    with pytest.raises(RepclError) as caught:
        read_predictions(path)
    assert str(caught.value) == (
        f'{path}, line 2: expected {{"id": text, "task": number, "label": text, '
        f'"predicted": [text or null, ...]}}, found {broken.decode(errors="replace")!r}. '
        "Run the experiment again to write it anew."
    )
