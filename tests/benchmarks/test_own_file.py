"""A user's own file as a benchmark: split, order of classes, tasks, and what is refused."""

from collections import Counter
from pathlib import Path

import pytest

from repcl.benchmarks import load_benchmark
from repcl.errors import InvalidData, InvalidSetting


def write(path: Path, counts: dict[str, int]) -> Path:
    rows = [f"{label} text {number},{label}\n" for label, n in counts.items() for number in range(n)]
    path.write_text("text,label\n" + "".join(rows))
    return path


def test_a_file_with_the_name_of_a_benchmark_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "hwu64.csv", dict.fromkeys("abcdefg", 10))
    with pytest.raises(InvalidSetting, match=r"hwu64\.csv would be taken for the benchmark hwu64.*rename"):
        load_benchmark(path)


def test_a_file_becomes_a_stream_named_after_it(tmp_path: Path) -> None:
    stream = load_benchmark(write(tmp_path / "tickets.csv", dict.fromkeys("abcdefg", 10)))
    assert (stream.name, stream.kind, stream.provenance.complete) == ("tickets", "sentence", True)
    assert list(stream.provenance.files) == ["tickets.csv"]


def test_classes_arrive_in_order_of_appearance_whatever_the_round(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", dict.fromkeys("zebra", 5))
    for round in (0, 1):
        stream = load_benchmark(str(path), round=round)
        assert [task.classes for task in stream.tasks] == [("z",), ("e",), ("b",), ("r",), ("a",)]


def test_there_are_five_tasks_unless_there_are_fewer_classes(tmp_path: Path) -> None:
    many = load_benchmark(write(tmp_path / "a.csv", dict.fromkeys("abcdefg", 2)))
    few = load_benchmark(write(tmp_path / "b.csv", dict.fromkeys("abc", 2)))
    assert (len(many.tasks), len(few.tasks)) == (5, 3)


def test_a_fifth_of_each_class_is_held_out_and_at_least_one_example(tmp_path: Path) -> None:
    stream = load_benchmark(write(tmp_path / "a.csv", {"a": 100, "b": 11, "c": 2}))
    test = Counter(example.label for task in stream.tasks for example in task.test)
    assert test == {"a": 20, "b": 2, "c": 1}


def test_training_and_test_part_are_disjoint_and_together_the_whole(tmp_path: Path) -> None:
    task = load_benchmark(write(tmp_path / "a.csv", {"a": 30, "b": 30}), tasks=1).tasks[0]
    train, test = ({example.text for example in part} for part in (task.train, task.test))
    assert not train & test
    assert len(train | test) == 60


def test_the_split_follows_the_round(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", {"a": 30, "b": 30})
    assert load_benchmark(path, round=1) == load_benchmark(path, round=1)
    assert load_benchmark(path, round=1).tasks != load_benchmark(path, round=2).tasks


def test_a_class_of_one_example_is_trained_and_noted_as_untested(tmp_path: Path) -> None:
    stream = load_benchmark(write(tmp_path / "a.csv", {"a": 5, "lonely": 1}))
    assert [(len(task.train), len(task.test)) for task in stream.tasks] == [(4, 1), (1, 0)]
    assert stream.provenance.notes == ("Trained but not tested for lack of examples: 'lonely'.",)


def test_a_separate_test_file_leaves_the_first_file_whole(tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", {"a": 3, "b": 2})
    test = write(tmp_path / "test.csv", {"b": 2, "a": 1})
    stream = load_benchmark(train, test_file=test)
    assert [(len(task.train), len(task.test)) for task in stream.tasks] == [(3, 1), (2, 2)]
    assert list(stream.provenance.files) == ["train.csv", "test.csv"]
    assert stream.provenance.notes == ("Test texts that also stand in the training part: 3.",)


def test_files_of_one_name_in_two_folders_are_both_accounted_for(tmp_path: Path) -> None:
    for folder in ("train", "test"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "data.csv", {"a": 2, "b": 2})
    stream = load_benchmark(tmp_path / "train" / "data.csv", test_file=tmp_path / "test" / "data.csv")
    assert len(stream.provenance.files) == 2


def test_relations_and_number_labels_come_through(tmp_path: Path) -> None:
    path = tmp_path / "relations.jsonl"
    row = '{{"text": "Ann met Bo {0}", "label": {0}, "head": [0, 3], "tail": [8, 10]}}\n'
    path.write_text("".join(row.format(number % 2) for number in range(6)))
    stream = load_benchmark(path)
    assert (stream.kind, stream.classes) == ("relation", ("0", "1"))


def test_other_column_names_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("q,topic\n1,a\n2,a\n3,b\n4,b\n")
    assert load_benchmark(path, text_column="q", label_column="topic").classes == ("a", "b")


def test_one_class_is_not_enough(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"has one class only, 'a': give at least two"):
        load_benchmark(write(tmp_path / "a.csv", {"a": 9}))


def test_classes_of_one_example_each_leave_nothing_to_test(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match="Nothing is left to test in a"):
        load_benchmark(write(tmp_path / "a.csv", {"a": 1, "b": 1}))


def test_a_test_file_with_an_unknown_class_is_refused(tmp_path: Path) -> None:
    train, test = write(tmp_path / "a.csv", {"a": 2, "b": 2}), write(tmp_path / "t.csv", {"c": 1})
    with pytest.raises(InvalidData, match=r"t\.csv has the class 'c', which .*a\.csv does not have"):
        load_benchmark(train, test_file=test)


def test_a_test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    train, test = write(tmp_path / "a.csv", {"a": 2, "b": 2}), tmp_path / "t.csv"
    test.write_text('text,label,trigger\nhello,a,"[0, 2]"\n')
    with pytest.raises(InvalidData, match=r"t\.csv holds events where .*a\.csv holds sentences"):
        load_benchmark(train, test_file=test)
