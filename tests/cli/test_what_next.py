"""`repcl suggest`, `repcl drift`, and how `repcl discover` gets from unknown texts to rows."""

import csv
import json

import pytest

from tests.conftest import toy_example

CHEAP = ("--method", "ncm", "--holdout-per-class", 4, "--device", "cpu")


def write(path, *topics, texts=20, start=0):
    rows = [
        toy_example("sentence", topic, number) for topic in topics for number in range(start, start + texts)
    ]
    lines = [f"{row.text} {number},{row.label}\n" for number, row in enumerate(rows, start)]
    path.write_text("text,label\n" + "".join(lines))
    return path


@pytest.fixture
def model(repcl, encoder_folder, tmp_path):
    data = write(tmp_path / "first.csv", "fruit", "vehicle")
    made = repcl("learn", tmp_path / "model", data, "--encoder", encoder_folder, *CHEAP)
    assert made.code == 0, made.err
    return tmp_path / "model"


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_suggest_shows_texts_with_a_reason(repcl, model, tmp_path):
    data = write(tmp_path / "texts.csv", "weather", "place", start=40)
    output = repcl("suggest", model, data, "--most", 4)
    assert output.code == 0, output.err
    assert "4 texts of 40 to label next" in output.out
    assert "why" in output.out


def test_suggest_writes_a_file_with_empty_labels_that_can_be_filled_in_and_learned(repcl, model, tmp_path):
    data, out = write(tmp_path / "texts.csv", "weather", start=40), tmp_path / "label-me.csv"
    output = repcl("suggest", model, data, "--most", 3, "--output", out)
    assert f"Written to {out}: fill in the label column" in output.out
    rows = rows_of(out)
    assert [row["label"] for row in rows] == ["", "", ""]
    assert {row["text"] for row in rows} <= {row["text"] for row in rows_of(data)}
    out.write_text(out.read_text().replace(",\n", ",weather\n").replace(",\r\n", ",weather\r\n"))
    assert repcl("learn", model, out, "--device", "cpu", "--accept").code == 0


def test_suggest_speaks_json(repcl, model, tmp_path):
    data = write(tmp_path / "texts.csv", "weather", start=40)
    told = json.loads(repcl("suggest", model, data, "--most", 2, "--json").out)
    assert (told["asked"], told["output"], len(told["suggested"])) == (20, None, 2)
    wanted = {"index", "text", "likely", "confidence", "is_unknown", "stands_for", "reason"}
    assert set(told["suggested"][0]) == wanted
    texts = [row["text"] for row in rows_of(data)]
    assert all(texts[one["index"]] == one["text"] for one in told["suggested"])


def test_suggest_keeps_a_file_that_exists(repcl, model, tmp_path):
    data, out = write(tmp_path / "texts.csv", "weather", start=40), tmp_path / "mine.csv"
    out.write_text("labeled by hand")
    output = repcl("suggest", model, data, "--output", out)
    assert output.code == 2
    assert f"{out} exists" in output.err
    assert out.read_text() == "labeled by hand"


@pytest.mark.parametrize("command", ["suggest", "drift"])
def test_a_file_without_texts_is_refused(repcl, model, tmp_path, command):
    (tmp_path / "empty.txt").write_text("\n")
    output = repcl(command, model, tmp_path / "empty.txt")
    assert output.code == 2
    assert "found none" in output.err


def test_drift_ends_with_one_verdict_and_says_what_it_compared_with(repcl, model, tmp_path):
    data = write(tmp_path / "texts.csv", "fruit", "vehicle", start=60)
    output = repcl("drift", model, data)
    assert output.code == 0, output.err
    told = json.loads(repcl("drift", model, data, "--json").out)
    assert output.out.strip().splitlines()[-1] == told["verdict"]
    assert told["reference"] == (
        "the 5% of known texts that the threshold calls unknown and the shares of classes among the 40 texts "
        "that were learned"
    )
    assert f"Compared with {told['reference']}; p is corrected for 3 shares." in output.out
    assert {share["name"] for share in told["classes"]} == {"fruit", "vehicle"}


def test_drift_compares_with_earlier_texts(repcl, model, tmp_path):
    data = write(tmp_path / "texts.csv", "fruit", "vehicle", start=60)
    told = json.loads(repcl("drift", model, data, "--reference", data, "--json").out)
    assert told["reference"] == "40 earlier texts, asked about in the same way"
    assert told["is_changed"] is False
    assert told["distance"] == 0


def test_discover_says_how_it_gets_from_unknown_texts_to_rows(repcl, model, tmp_path):
    data, out = write(tmp_path / "texts.csv", "weather", start=40), tmp_path / "groups.csv"
    lines = data.read_text().splitlines()
    data.write_text("\n".join([*lines, *lines[1:6]]) + "\n")
    output = repcl("discover", model, data, "--threshold", 1, "--output", out)
    assert "25 of 25 texts are unknown" in output.out
    assert "5 of them repeat another one and are left out: 20 rows to label." in output.out
    assert len(rows_of(out)) == 20
