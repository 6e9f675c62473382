"""Arranging a stream: tasks, caps, class orders, where data is looked for, and what is refused."""

import json
from pathlib import Path

import pytest

from repcl.benchmarks import BENCHMARKS, load_benchmark
from repcl.benchmarks.base import data_folder
from repcl.errors import InvalidData, InvalidSetting, UnknownName


def test_every_promised_benchmark_is_in_the_table() -> None:
    assert list(BENCHMARKS) == ["fewrel", "tacred", "maven", "hwu64", "clinc150", "banking77", "demo"]


def test_a_mistyped_name_gets_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match=r"No benchmark 'hwu46'\. Did you mean 'hwu64'\? Known: fewrel"):
        load_benchmark("hwu46")


@pytest.mark.parametrize("name", ["tickets.csv", "folder/tickets"])
def test_a_name_that_looks_like_a_path_is_a_missing_file(name: str) -> None:
    with pytest.raises(InvalidData, match=rf"There is no file {name}"):
        load_benchmark(name)


def test_the_given_folder_comes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REPCL_DATA", "elsewhere")
    assert data_folder(tmp_path) == tmp_path
    assert data_folder() == Path("elsewhere")


def test_without_any_word_data_is_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPCL_DATA", raising=False)
    assert data_folder().parts[-2:] == ("repcl", "data")


def test_the_number_of_tasks_may_be_chosen() -> None:
    stream = load_benchmark("demo", tasks=4)
    assert [len(task.classes) for task in stream.tasks] == [8, 8, 7, 7]
    assert not stream.provenance.capped


def test_the_size_of_tasks_may_be_chosen() -> None:
    stream = load_benchmark("demo", classes_per_task=7)
    assert [len(task.classes) for task in stream.tasks] == [7, 7, 7, 7, 2]


def test_number_and_size_of_tasks_together_leave_classes_out_and_say_so() -> None:
    stream = load_benchmark("demo", tasks=2, classes_per_task=4)
    assert stream.classes == load_benchmark("demo").classes[:8]
    assert stream.provenance.capped
    assert "8 of 30 classes are used, as asked for." in stream.provenance.notes


def test_caps_keep_the_first_examples_of_each_class() -> None:
    whole, capped = (
        load_benchmark("demo"),
        load_benchmark("demo", max_train_per_class=2, max_test_per_class=1),
    )
    assert capped.provenance.capped
    for task, small in zip(whole.tasks, capped.tasks, strict=True):
        for label in task.classes:
            train = [example for example in task.train if example.label == label]
            assert [example for example in small.train if example.label == label] == train[:2]
        assert len(small.test) == len(task.classes)


def test_a_cap_that_removes_nothing_is_not_a_cap() -> None:
    assert not load_benchmark("demo", max_train_per_class=10_000).provenance.capped


@pytest.mark.parametrize(
    "setting", ["tasks", "classes_per_task", "max_train_per_class", "max_test_per_class"]
)
def test_numbers_below_one_are_refused(setting: str) -> None:
    with pytest.raises(InvalidSetting, match=f"{setting} is 0: it must be a whole number, 1 or more"):
        load_benchmark("demo", **{setting: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [1.5, -1, "0", True])
def test_a_round_is_a_whole_number(number: object) -> None:
    with pytest.raises(InvalidSetting, match=f"round is {number!r}: it must be a whole number, 0 or more"):
        load_benchmark("demo", round=number)  # type: ignore[arg-type]


def test_more_tasks_than_classes_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="31 tasks need as many classes, but there are 30"):
        load_benchmark("demo", tasks=31)


def test_more_tasks_than_the_classes_make_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="4 tasks of 10 classes were asked for, but the classes make 3"):
        load_benchmark("demo", tasks=4, classes_per_task=10)


def test_a_test_file_is_only_for_a_users_own_data(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="demo has its own test part"):
        load_benchmark("demo", test_file=tmp_path / "test.csv")


def test_a_class_order_may_be_one_name_a_line(tmp_path: Path) -> None:
    order = sorted(load_benchmark("demo").classes)
    path = tmp_path / "order.txt"
    path.write_text("\n".join(order) + "\n\n", encoding="utf-8-sig")
    stream = load_benchmark("demo", class_order_file=path, tasks=15)
    assert stream.classes == tuple(order)
    assert len(stream.tasks) == 15


def test_a_class_order_may_be_a_flat_json_list(tmp_path: Path) -> None:
    order = sorted(load_benchmark("demo").classes)
    path = tmp_path / "order.json"
    path.write_text(json.dumps(order))
    assert load_benchmark("demo", class_order_file=path).classes == tuple(order)


def test_a_json_list_of_lists_is_the_tasks_themselves(tmp_path: Path) -> None:
    order = sorted(load_benchmark("demo").classes)
    path = tmp_path / "order.json"
    path.write_text(json.dumps([order[:25], order[25:]]))
    stream = load_benchmark("demo", class_order_file=path)
    assert [task.classes for task in stream.tasks] == [tuple(order[:25]), tuple(order[25:])]
    with pytest.raises(InvalidSetting, match="already lists 2 tasks"):
        load_benchmark("demo", class_order_file=path, tasks=5)


def change(tmp_path: Path, remove: int, add: list[str]) -> Path:
    path = tmp_path / "order.txt"
    path.write_text("\n".join([*sorted(load_benchmark("demo").classes)[remove:], *add]))
    return path


def test_an_order_with_an_unknown_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match="names classes that the data do not have: 'nonsense'"):
        load_benchmark("demo", class_order_file=change(tmp_path, 0, ["nonsense"]))


def test_an_order_that_lacks_a_class_is_refused(tmp_path: Path) -> None:
    first = sorted(load_benchmark("demo").classes)[0]
    with pytest.raises(InvalidData, match=f"does not name: '{first}'. Name every class"):
        load_benchmark("demo", class_order_file=change(tmp_path, 1, []))


def test_an_order_that_names_a_class_twice_is_refused(tmp_path: Path) -> None:
    first = sorted(load_benchmark("demo").classes)[0]
    with pytest.raises(InvalidData, match=f"names more than once: '{first}'"):
        load_benchmark("demo", class_order_file=change(tmp_path, 0, [first]))


@pytest.mark.parametrize(
    ("content", "message"),
    [(b'[["a"]', "not valid JSON"), (b"[[1]]", "something else than class names"), (b"\xe9", "not UTF-8")],
)
def test_an_order_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "order.json"
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=message):
        load_benchmark("demo", class_order_file=path)


def test_a_missing_order_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"There is no file .*order\.txt"):
        load_benchmark("demo", class_order_file=tmp_path / "order.txt")
