"""X as a table: the columns of a pandas DataFrame, or of anything that has named columns."""

import numpy as np
import pytest

from repcl.classifier import InvalidInput
from repcl.classifier.inputs import as_examples
from repcl.data import Example, Span
from tests.classifier.conftest import save_tiny_encoder, toy
from tests.conftest import toy_task


class Table:
    """Columns by name, as a DataFrame has them."""

    def __init__(self, **columns) -> None:
        self.columns = list(columns)
        self.cells = columns
        self.ndim = 2

    def __getitem__(self, name):
        return self.cells[name]


def test_a_column_of_texts_is_all_that_is_needed():
    assert as_examples(Table(id=[1, 2], text=["a", "b"])) == [Example("a", ""), Example("b", "")]


@pytest.mark.parametrize(
    "pair", [[0, 5], (0, 5), "[0, 5]", np.array([0, 5]), Span(0, 5)], ids=lambda pair: type(pair).__name__
)
def test_a_span_may_be_any_pair(pair):
    assert as_examples(Table(text=["apple"], trigger=[pair])) == [Example("apple", "", trigger=Span(0, 5))]


def test_heads_and_tails_make_relations():
    (found,) = as_examples(Table(text=["Ann met Bo"], tail=[[8, 10]], head=[[0, 3]]))
    assert found == Example("Ann met Bo", "", head=Span(0, 3), tail=Span(8, 10))


def test_an_empty_text_has_no_spans():
    assert as_examples(Table(text=[""], trigger=[None])) == [Example("", "")]


@pytest.mark.parametrize("pair", [None, [0], [0, 6], [3, 3], "here", 5, [0.5, 2], float("nan")])
def test_what_is_no_span_is_refused_by_its_position(pair):
    with pytest.raises(InvalidInput, match="at position 1 of column 'trigger'"):
        as_examples(Table(text=["apple", "apple"], trigger=[[0, 5], pair]))


def test_columns_that_are_missing_are_named():
    with pytest.raises(InvalidInput, match="Expected a column 'text', found 'question', 'id'"):
        as_examples(Table(question=["a"], id=[1]))
    with pytest.raises(InvalidInput, match="Expected both columns 'head' and 'tail'"):
        as_examples(Table(text=["a"], head=[[0, 1]]))


def test_a_text_that_is_none_is_refused_by_its_position():
    with pytest.raises(InvalidInput, match="at position 1, found nan"):
        as_examples(Table(text=["a", float("nan")]))


def test_a_table_teaches_what_its_examples_teach(make, tmp_path):
    encoder = str(save_tiny_encoder(tmp_path / "encoder", "event"))
    examples = toy_task("event", "fruit", "vehicle", train=6).train
    labels = [one.label for one in examples]
    table = Table(
        text=[one.text for one in examples],
        trigger=[[one.trigger.start, one.trigger.end] for one in examples],
    )
    first = make("ncm", encoder=encoder).fit(examples, labels)
    second = make("ncm", encoder=encoder).fit(table, labels)
    assert first.predict_proba(examples).tolist() == second.predict_proba(table).tolist()


def test_pandas_frames_series_and_columns_of_labels_work(make):
    pandas = pytest.importorskip("pandas")
    texts, labels = toy("fruit", "vehicle")
    frame = pandas.DataFrame({"id": range(len(texts)), "text": texts, "label": labels})
    plain = make("ncm").fit(texts, labels).predict_proba(texts).tolist()
    assert make("ncm").fit(frame, frame["label"]).predict_proba(frame).tolist() == plain
    taught = make("ncm").fit(frame, frame[["label"]])
    assert taught.score(frame, frame[["label"]]) == taught.score(texts, labels)
    assert make("ncm").fit(frame["text"], frame["label"]).predict_proba(frame["text"]).tolist() == plain
