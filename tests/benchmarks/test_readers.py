"""Each original format, read from small made-up files: texts, labels and marked spans."""

from pathlib import Path

import pytest

from repcl.benchmarks import BENCHMARKS, load_benchmark
from repcl.data.examples import Example, Span, TaskStream
from repcl.errors import InvalidData, MissingData

FIXTURES = Path(__file__).parent / "fixtures"


def examples_of(stream: TaskStream) -> list[Example]:
    return [example for task in stream.tasks for example in (*task.train, *task.test)]


def marked(example: Example) -> list[str]:
    spans = (example.head, example.tail, example.trigger)
    return [example.text[span.start : span.end] for span in spans if span]


def find(stream: TaskStream, beginning: str) -> Example:
    return next(example for example in examples_of(stream) if example.text.startswith(beginning))


def load(name: str, round: int = 0) -> TaskStream:
    return load_benchmark(name, data_dir=FIXTURES, round=round)


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name != "demo"])
def test_every_original_format_is_read_and_known_to_be_incomplete(name: str) -> None:
    stream = load(name)
    assert stream.kind == BENCHMARKS[name].kind
    assert not stream.provenance.complete
    assert "not comparable with published numbers" in stream.provenance.notes[0]
    assert set(stream.provenance.files) == {file.name for file in BENCHMARKS[name].files}


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name != "demo"])
def test_missing_files_are_named_with_folder_and_remedy(name: str, tmp_path: Path) -> None:
    first = BENCHMARKS[name].files[0].name
    with pytest.raises(MissingData, match=rf"{name} needs {first}.* in {tmp_path / name}: ") as caught:
        load_benchmark(name, data_dir=tmp_path)
    remedy = {"tacred": "LDC2018T24", "maven": "THU-KEG/MAVEN-dataset"}.get(name, f"`repcl data get {name}`")
    assert remedy in str(caught.value)


@pytest.mark.parametrize("content", ['{"P6": [{"tokens": ["a"]}]}', '{"P6"', "[1, 2]"])
def test_files_of_another_layout_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "fewrel").mkdir()
    for name in ("train_wiki.json", "val_wiki.json"):
        (tmp_path / "fewrel" / name).write_text(content)
    with pytest.raises(
        InvalidData, match=r"not laid out as the original fewrel files .*repcl data get fewrel"
    ):
        load_benchmark("fewrel", data_dir=tmp_path)


def test_fewrel_marks_the_first_mention_of_head_and_tail() -> None:
    stream = load("fewrel")
    assert stream.classes == ("P6", "P26", "P177")
    found = [marked(example) for round in range(3) for example in examples_of(load("fewrel", round))]
    assert ["Port Arlen", "Sela Bright"] in found
    assert ["Horní Brod", "Žofie Nová"] in found
    twice = next(e for s in range(9) for e in examples_of(load("fewrel", s)) if "Kestrel 's" in e.text)
    assert twice.head == Span(20, 27)


def test_fewrel_holds_out_a_fifth_and_leaves_a_fifth_unused() -> None:
    stream = load("fewrel")
    assert [(len(task.train), len(task.test)) for task in stream.tasks] == [(3, 1)] * 3


def test_tacred_marks_subject_as_head_and_object_as_tail() -> None:
    stream = load("tacred")
    assert marked(find(stream, "Rosa Lind ,")) == ["Rosa Lind", "chief engineer"]
    assert marked(find(stream, "Judge Amos")) == ["Amos Reed", "Judge"]


def test_tacred_leaves_out_no_relation_and_unlisted_relations() -> None:
    stream = load("tacred")
    assert set(stream.classes) == {"per:title", "org:founded_by"}
    assert len(examples_of(stream)) == 10


def test_maven_marks_triggers_of_several_words_and_repeats_a_sentence_per_mention() -> None:
    stream = load("maven")
    assert marked(find(stream, "The army")) == ["set out"]
    conquering = [e for e in examples_of(stream) if e.text.startswith("It took over")]
    assert [marked(example) for example in conquering] == [["took over"], ["fell"]]


def test_maven_leaves_out_unlisted_types_types_without_test_and_negative_triggers() -> None:
    stream = load("maven")
    assert set(stream.classes) == {"Conquering", "Departing"}
    assert len(examples_of(stream)) == 6


def test_hwu64_joins_scenario_and_intent_and_drops_rows_that_lack_one() -> None:
    stream = load("hwu64")
    assert set(stream.classes) == {"alarm_set", "general_joke"}
    assert len(examples_of(stream)) == 20
    assert find(stream, "wake me at six") == Example("wake me at six", "alarm_set")


def test_clinc150_leaves_out_validation_and_out_of_scope_texts() -> None:
    stream = load("clinc150")
    assert set(stream.classes) == {"transfer", "translate"}
    assert sorted(e.text for task in stream.tasks for e in task.test) == [
        "move ten dollars to savings",
        "say thanks in german",
    ]


def test_a_text_in_both_parts_is_counted() -> None:
    assert "Test texts that also stand in the training part: 1." in load("clinc150").provenance.notes


def test_banking77_reads_quoted_texts_and_takes_class_order_from_categories() -> None:
    stream = load("banking77")
    assert "My card, which I ordered in May, is late." in {e.text for e in examples_of(stream)}
    assert "Is the rate\nfixed?" in {e.text for e in examples_of(stream)}
    assert stream.classes == ("exchange_rate", "card_arrival")


def test_the_demo_corpus_comes_with_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REPCL_DATA", str(tmp_path))
    stream = load_benchmark("demo")
    assert [len(task.classes) for task in stream.tasks] == [3] * 10
    assert stream.provenance.complete
    assert all(task.train and task.test for task in stream.tasks)


def test_a_round_is_the_same_every_time_and_other_rounds_differ() -> None:
    assert load("hwu64", 1) == load("hwu64", 1)
    assert load("hwu64", 1).tasks != load("hwu64", 2).tasks
