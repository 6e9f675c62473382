"""The published protocols on data of full size, made up: counts, caps, shuffles and class orders."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from repcl.benchmarks import BENCHMARKS, load_benchmark
from repcl.benchmarks.fewrel import LABELS as FEWREL_LABELS
from repcl.benchmarks.hwu64 import FILE as HWU64_FILE
from repcl.benchmarks.hwu64 import LABELS as HWU64_LABELS
from repcl.benchmarks.maven import LABELS as MAVEN_LABELS
from repcl.benchmarks.tacred import COUNTS as TACRED_COUNTS
from repcl.data.examples import TaskStream
from repcl.data.order import class_order
from repcl.errors import UnknownName

LISTS = {
    "fewrel": FEWREL_LABELS,
    "tacred": tuple(TACRED_COUNTS),
    "maven": MAVEN_LABELS,
    "hwu64": HWU64_LABELS,
}
FIRST_TWO_TASKS = {
    "fewrel": "26 15 11 58 75 21 64 53 72 67 3 17 52 63 40 39",
    "tacred": "3 24 35 22 32 26 1 11",
    "maven": "62 61 3 43 110 40 98 6 106 101 54 39 56 96 87 51 44 64 9 26 100 99 25 46",
    "hwu64": "4 24 43 31 39 13 19 7 17 25",
}


def per_class(stream: TaskStream, part: str) -> Counter[str]:
    return Counter(example.label for task in stream.tasks for example in getattr(task, part))


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))


def write_fewrel(folder: Path, counts: dict[str, int]) -> None:
    relations = {
        label: [
            {"tokens": [label, str(number)], "h": ["", "", [[0]]], "t": ["", "", [[1]]]}
            for number in range(n)
        ]
        for label, n in counts.items()
    }
    write_json(folder / "fewrel" / "train_wiki.json", relations)
    write_json(folder / "fewrel" / "val_wiki.json", {})


def write_tacred(folder: Path, counts: dict[str, int]) -> None:
    span = {"subj_start": 0, "subj_end": 0, "obj_start": 1, "obj_end": 1}
    items = [
        {"relation": label, "token": [label, str(number)], **span}
        for label, n in counts.items()
        for number in range(n)
    ]
    write_json(folder / "tacred" / "train.json", items)
    write_json(folder / "tacred" / "dev.json", [])
    write_json(folder / "tacred" / "test.json", [])


def write_maven(folder: Path, train: dict[str, int], valid: dict[str, int]) -> None:
    for name, counts in (("train", train), ("valid", valid)):
        path = folder / "maven" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        with path.open("w") as file:
            for label, n in counts.items():
                sentences = [{"tokens": [name, label, str(number)]} for number in range(n)]
                mentions = [{"sent_id": number, "offset": [1, 2]} for number in range(n)]
                file.write(
                    json.dumps({"content": sentences, "events": [{"type": label, "mention": mentions}]})
                    + "\n"
                )


def write_hwu64(folder: Path, counts: dict[str, int]) -> None:
    path = folder / "hwu64" / HWU64_FILE
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        file.write("scenario;intent;answer_normalised\n")
        for label, n in counts.items():
            scenario, intent = label.split("_", 1)
            file.writelines(f"{scenario};{intent};{label} {number}\n" for number in range(n))


@pytest.mark.parametrize("name", LISTS)
def test_label_lists_have_the_published_number_of_distinct_classes(name: str) -> None:
    assert len(set(LISTS[name])) == len(LISTS[name]) == BENCHMARKS[name].classes


@pytest.mark.parametrize("name", LISTS)
def test_round_zero_has_the_class_order_of_the_released_code(name: str) -> None:
    expected = [int(index) for index in FIRST_TWO_TASKS[name].split()]
    assert class_order(len(LISTS[name]), 2021)[: len(expected)] == expected


@pytest.mark.parametrize(
    ("round", "beginning"),
    [
        (0, "P156 P84 P39 P276"),
        (1, "P27 P159 P413 P410"),
        (2, "P674 P176 P118 P39"),
        (3, "P1408 P413 P800 P991"),
        (4, "P137 P135 P921 P674"),
    ],
)
def test_fewrel_rounds_begin_as_in_the_published_logs(tmp_path: Path, round: int, beginning: str) -> None:
    write_fewrel(tmp_path, dict.fromkeys(sorted(FEWREL_LABELS), 5))
    stream = load_benchmark("fewrel", data_dir=tmp_path, round=round)
    assert " ".join(stream.tasks[0].classes[:4]) == beginning


def test_fewrel_with_700_sentences_a_relation_is_complete_with_420_and_140(tmp_path: Path) -> None:
    write_fewrel(tmp_path, dict.fromkeys(FEWREL_LABELS, 700))
    stream = load_benchmark("fewrel", data_dir=tmp_path)
    assert stream.provenance.complete
    (note,) = stream.provenance.notes
    assert note.startswith("Not the public file byte for byte, by its hash: train_wiki.json.")
    assert set(per_class(stream, "train").values()) == {420}
    assert set(per_class(stream, "test").values()) == {140}


def test_fewrel_with_fewer_sentences_keeps_the_proportion_and_says_so(tmp_path: Path) -> None:
    write_fewrel(tmp_path, {**dict.fromkeys(FEWREL_LABELS, 700), "P6": 593})
    stream = load_benchmark("fewrel", data_dir=tmp_path)
    assert not stream.provenance.complete
    assert stream.provenance.notes[0].startswith("The files hold 55,893 of 56,000 sentences")
    assert (per_class(stream, "train")["P6"], per_class(stream, "test")["P6"]) == (355, 118)


def test_fewrel_shuffles_relations_one_after_the_other_in_file_order(tmp_path: Path) -> None:
    write_fewrel(tmp_path, {"P26": 5, "P6": 5})
    stream = load_benchmark("fewrel", data_dir=tmp_path)
    generator = random.Random(2021)
    for label in ("P26", "P6"):
        numbers = list(range(5))
        generator.shuffle(numbers)
        task = next(task for task in stream.tasks if label in task.classes)
        assert [example.text for example in task.train] == [f"{label} {number}" for number in numbers[:3]]
        assert [example.text for example in task.test] == [f"{label} {numbers[4]}"]


def test_tacred_of_full_size_has_the_released_codes_counts(tmp_path: Path) -> None:
    sizes = {label: train + test for label, (train, test) in TACRED_COUNTS.items()}
    write_tacred(tmp_path, {**sizes, "no_relation": 1000})
    stream = load_benchmark("tacred", data_dir=tmp_path)
    train, test = per_class(stream, "train"), per_class(stream, "test")
    assert {label: (train[label], test[label]) for label in TACRED_COUNTS} == TACRED_COUNTS
    assert (train.total(), test.total()) == (7391, 1259)
    assert stream.provenance.complete
    assert [len(task.classes) for task in stream.tasks] == [4] * 10


def test_tacred_as_in_the_paper_tests_40_sentences_a_relation(tmp_path: Path) -> None:
    sizes = {label: train + test for label, (train, test) in TACRED_COUNTS.items()}
    write_tacred(tmp_path, sizes)
    stream = load_benchmark("tacred", data_dir=tmp_path, protocol="paper")
    assert max(per_class(stream, "test").values()) == 40
    assert max(per_class(stream, "train").values()) == 320
    assert stream.provenance.complete


def test_maven_trains_on_the_first_thousand_mentions_and_tests_on_all(tmp_path: Path) -> None:
    write_maven(tmp_path, {"Know": 1200, "Warning": 3}, {"Warning": 2, "Know": 1500})
    stream = load_benchmark("maven", data_dir=tmp_path)
    task = next(task for task in stream.tasks if "Know" in task.classes)
    assert [example.text for example in task.train] == [f"train Know {number}" for number in range(1000)]
    assert len(task.test) == 1500


def test_maven_as_in_the_paper_has_no_cap(tmp_path: Path) -> None:
    write_maven(tmp_path, {"Know": 1200, "Warning": 3}, {"Know": 1, "Warning": 1})
    stream = load_benchmark("maven", data_dir=tmp_path, protocol="paper")
    assert per_class(stream, "train")["Know"] == 1200


def test_maven_without_some_types_keeps_their_order_in_tasks_as_equal_as_possible(tmp_path: Path) -> None:
    present = dict.fromkeys(reversed(MAVEN_LABELS[::5]), 1)
    write_maven(tmp_path, present, present)
    stream = load_benchmark("maven", data_dir=tmp_path)
    kept = MAVEN_LABELS[::5]
    assert stream.classes == tuple(kept[index] for index in class_order(24, 2021))
    assert [len(task.classes) for task in stream.tasks] == [3, 3, 3, 3, 2, 2, 2, 2, 2, 2]


def test_maven_with_every_mention_is_complete(tmp_path: Path) -> None:
    others = {"Of_the_other_48_types": 77_993 - 120}
    write_maven(tmp_path, dict.fromkeys(MAVEN_LABELS, 1) | others, dict.fromkeys(MAVEN_LABELS, 158))
    stream = load_benchmark("maven", data_dir=tmp_path)
    assert stream.provenance.complete
    assert [len(task.classes) for task in stream.tasks] == [12] * 10


def test_hwu64_caps_a_class_at_194_and_tests_the_first_tenth(tmp_path: Path) -> None:
    write_hwu64(tmp_path, {"calendar_set": 400, "play_music": 195, "qa_factoid": 194, "alarm_set": 27})
    stream = load_benchmark("hwu64", data_dir=tmp_path)
    assert per_class(stream, "train") == {
        "calendar_set": 175,
        "play_music": 175,
        "qa_factoid": 175,
        "alarm_set": 25,
    }
    assert per_class(stream, "test") == {
        "calendar_set": 19,
        "play_music": 19,
        "qa_factoid": 19,
        "alarm_set": 2,
    }


def test_hwu64_shuffles_classes_one_after_the_other_in_the_lists_order(tmp_path: Path) -> None:
    write_hwu64(tmp_path, {"play_music": 20, "calendar_set": 20})
    stream = load_benchmark("hwu64", data_dir=tmp_path, round=3)
    generator = random.Random(2321)
    for label in ("calendar_set", "play_music"):
        numbers = list(range(20))
        generator.shuffle(numbers)
        task = next(task for task in stream.tasks if label in task.classes)
        assert [example.text for example in task.test] == [f"{label} {number}" for number in numbers[:2]]


def test_hwu64_as_in_the_paper_has_no_cap(tmp_path: Path) -> None:
    write_hwu64(tmp_path, {**dict.fromkeys(HWU64_LABELS, 400), "play_music": 24_137 - 49 * 400})
    stream = load_benchmark("hwu64", data_dir=tmp_path, protocol="paper")
    assert per_class(stream, "train").total() + per_class(stream, "test").total() == 24_137
    assert stream.provenance.complete


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"No protocol 'papre'. Did you mean 'paper'\?"):
        load_benchmark("demo", protocol="papre")  # type: ignore[arg-type]
