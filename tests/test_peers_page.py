"""The page that compares repcl with other tools agrees with the files; tools get texts they can read."""

import json
import runpy
from pathlib import Path

import pytest

from repcl.errors import ResultMismatch, UnknownName

ROOT = Path(__file__).parent.parent
PAGE = runpy.run_path(str(ROOT / "docs/make_peers.py"))
render_page = PAGE["render_page"]


@pytest.fixture
def measure(monkeypatch):
    """The script that runs one tool, imported as it is when it is run."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks/peers"))
    import measure

    return measure


def write(folder, tool, number, accuracy, *, kind="straight", seconds=2.0, labels=(), answers=()) -> None:
    path = folder / "demo" / tool.replace(" ", "-") / f"round-{number}-{kind}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    of_texts = {"labels": list(labels), "answers": list(answers)} if labels else {}
    costs = {"seconds_per_task": seconds, "milliseconds_per_prediction": 5.0, "bytes_stored": 3_000_000}
    scores = {"accuracy": accuracy, "macro_recall": accuracy, "forgetting": 0.25}
    path.write_text(json.dumps({"learner": tool, **scores, **costs, **of_texts}), encoding="utf-8")


def lines(template, folder) -> list[str]:
    return [line for line in render_page(template, folder).splitlines() if line.startswith("|")]


def test_the_page_in_docs_is_what_the_committed_measurements_give():
    template = ROOT.joinpath("docs/peers.template.md").read_text(encoding="utf-8")
    page = ROOT.joinpath("docs/peers.md").read_text(encoding="utf-8")
    assert page == render_page(template, ROOT / "results/peers"), "run `make results`"


def test_several_rounds_show_their_mean_and_standard_error(tmp_path):
    # 80, 84 and 88 percent: standard deviation 4, divided by the root of 3
    for number, accuracy in enumerate((0.80, 0.84, 0.88)):
        write(tmp_path, "nearest mean", number, accuracy)
    assert "84.0 ± 2.3" in lines("{{ overview }}", tmp_path)[-1]


def test_ours_stands_first_and_the_others_by_accuracy(tmp_path):
    for tool, accuracy in (("low", 0.5), ("high", 0.9), ("repcl instant", 0.7)):
        write(tmp_path, tool, 0, accuracy)
    _, _, *rows = lines("{{ details demo }}", tmp_path)
    assert [row.split("|")[1].strip() for row in rows] == ["repcl instant", "high", "low"]


def test_costs_are_those_of_the_first_round(tmp_path):
    write(tmp_path, "repcl instant", 0, 0.7)
    write(tmp_path, "repcl instant", 1, 0.7, seconds=9.0)
    assert "| 2.0 | 5.0 | 3.0 MB |" in lines("{{ details demo }}", tmp_path)[-1]


def test_a_reloaded_model_has_a_table_of_its_own(tmp_path):
    write(tmp_path, "repcl instant", 0, 0.7)
    write(tmp_path, "repcl instant", 0, 0.6, kind="reload")
    assert "| 60.0 |" in lines("{{ reloaded demo }}", tmp_path)[-1]
    assert "| 70.0 |" in lines("{{ details demo }}", tmp_path)[-1]


def test_tools_are_compared_text_by_text(tmp_path):
    # ours alone is right on five texts, the other on none: p = 2 * 0.5 ** 5
    write(tmp_path, "repcl instant", 0, 1.0, labels=[0] * 10, answers=[0] * 10)
    write(tmp_path, "nearest mean", 0, 0.5, labels=[0] * 10, answers=[0] * 5 + [1] * 5)
    assert lines("{{ tests }}", tmp_path)[-1] == "| demo | nearest mean | +50.0 | 5 | 0 | 0.0625 | 0.0625 |"


def test_p_values_are_corrected_for_the_number_of_tools(tmp_path):
    # two tools, both with p = 0.0625: by Holm's rule 2 * 0.0625
    write(tmp_path, "repcl instant", 0, 1.0, labels=[0] * 10, answers=[0] * 10)
    for tool in ("nearest mean", "river"):
        write(tmp_path, tool, 0, 0.5, labels=[0] * 10, answers=[0] * 5 + [1] * 5)
    assert lines("{{ tests }}", tmp_path)[-1].endswith("| 0.0625 | 0.125 |")


def test_answers_that_were_not_stored_are_not_compared(tmp_path):
    write(tmp_path, "repcl instant", 0, 1.0, labels=[0], answers=[0])
    write(tmp_path, "nearest mean", 0, 0.5)
    assert not any("nearest mean" in line for line in lines("{{ tests }}", tmp_path))


def test_a_tool_without_spans_reads_the_entities_in_front_of_the_text(measure):
    marked = {"text": "Paris is in France.", "head": {"start": 0, "end": 5}, "tail": {"start": 12, "end": 18}}
    assert measure.in_words({"texts": [marked, "hello"], "labels": ["in", "hi"]}) == {
        "texts": ["Paris, France: Paris is in France.", "hello"],
        "labels": ["in", "hi"],
    }


def test_the_last_answers_are_stored_beside_their_labels(measure, tmp_path):
    class Constant:
        def learn(self, texts, labels):
            self.answer = labels[0]

        def predict(self, texts):
            return [self.answer] * len(texts)

        def save(self, folder):
            return 7

    def part(label):
        return {"texts": [f"a {label}", f"b {label}"], "labels": [label] * 2}

    stream = {"tasks": [{"train": part(label), "test": part(label)} for label in ("x", "y")]}
    options = type("Options", (), {"reload": False})()
    measured = measure.measured(Constant(), None, stream, options)
    assert measured["classes"] == ["x", "y"]
    assert measured["labels"] == [0, 0, 1, 1]
    assert measured["answers"] == [1, 1, 1, 1]  # the second task is all it knows
    assert measured["accuracy"] == 0.5
    assert measured["forgetting"] == 1.0


def test_only_answers_of_the_tested_round_are_compared(tmp_path):
    write(tmp_path, "repcl instant", 0, 1.0, labels="ab", answers="ab")
    write(tmp_path, "other", 1, 0.5, labels="ba", answers="bb")
    assert not [line for line in lines("{{ tests }}", tmp_path) if "other" in line]


def test_answers_to_other_texts_are_refused(tmp_path):
    write(tmp_path, "repcl instant", 0, 1.0, labels="ab", answers="ab")
    write(tmp_path, "other", 0, 0.5, labels="ba", answers="bb")
    with pytest.raises(ResultMismatch, match="repcl instant and other answered other texts"):
        render_page("{{ tests }}", tmp_path)


@pytest.mark.parametrize(("placeholder", "said"), [("detials demo", "details"), ("details dmo", "demo")])
def test_slips_in_the_template_are_errors(tmp_path, placeholder, said):
    with pytest.raises(UnknownName, match=f"Did you mean '{said}'"):
        render_page(f"{{{{ {placeholder} }}}}", tmp_path)
