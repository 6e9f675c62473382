"""`repcl demo`: what it tells is what happened, it fits a terminal, and its stored numbers come from runs."""

import re
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import pytest

from repcl.classifier import ContinualClassifier, ModelFolder
from repcl.cli import demo
from repcl.cli.demo import story
from repcl.cli.demo.beside import stored_runs
from repcl.cli.demo.story import ClassScore, Desk, bundled_desk, play
from repcl.errors import InvalidData
from repcl.experiments import RunStore

ROOT = Path(__file__).parents[2]
pytestmark = [  # the tiny encoder cuts texts short and is easily confused
    pytest.mark.filterwarnings("ignore:.*were shortened"),
    pytest.mark.filterwarnings("ignore::repcl.classifier.guard.ForgettingWarning"),
]


@pytest.fixture
def small_desk(monkeypatch, encoder_folder) -> Desk:
    """Two classes and one more, learned by a tiny encoder."""
    desk = bundled_desk()
    made = ContinualClassifier

    def with_tiny_encoder(**parameters: object) -> ContinualClassifier:
        return made(encoder=str(encoder_folder), settings={"features": 50, "maps": 1}, **parameters)

    monkeypatch.setattr(with_tiny_encoder, "load", made.load, raising=False)
    monkeypatch.setattr(story, "ContinualClassifier", with_tiny_encoder)
    return Desk((desk.weeks[0][:2], desk.weeks[1][:1]), desk.splits)


def test_the_bundled_desk_teaches_twenty_intents_then_seven_and_leaves_three_out():
    desk = bundled_desk()
    assert [len(week) for week in desk.weeks] == [20, 7]
    assert len(desk.splits) == 30
    assert not set(desk.weeks[0]) & set(desk.weeks[1])


def test_a_story_scores_old_intents_twice_and_new_ones_once(tmp_path, small_desk):
    told = play(tmp_path / "desk", small_desk)
    assert [one.before is None for one in told.classes] == [False, False, True]
    assert told.texts == (48, 24)
    assert told.tested == (16, 8)


def test_a_story_ends_at_the_revision_before_the_bad_update(tmp_path, small_desk):
    told = play(tmp_path / "desk", small_desk)
    assert ModelFolder(tmp_path / "desk").current() == told.bad_update.revision == 2
    assert told.bad_update.accuracy_after_rollback == pytest.approx(told.all_after)


def test_a_second_demo_leaves_nothing_of_the_first(tmp_path, small_desk):
    play(tmp_path / "desk", small_desk)
    play(tmp_path / "desk", small_desk)
    assert ModelFolder(tmp_path / "desk").numbers() == [4, 5, 6]


def test_a_model_that_a_user_taught_is_not_replaced_by_a_demo(tmp_path, small_desk):
    story.ContinualClassifier().fit(["a", "b"], ["x", "y"]).save(tmp_path / "desk")
    with pytest.raises(InvalidData, match="give another --out"):
        play(tmp_path / "desk", small_desk)
    assert ContinualClassifier.load(tmp_path / "desk").classes_.tolist() == ["x", "y"]


def test_a_demo_that_a_user_taught_more_texts_is_not_replaced_by_the_next(tmp_path, small_desk):
    play(tmp_path / "desk", small_desk)
    name = small_desk.weeks[0][0]
    ContinualClassifier.load(tmp_path / "desk").partial_fit(["a text of my own"], [name]).save(
        tmp_path / "desk"
    )
    with pytest.raises(InvalidData, match="give another --out"):
        play(tmp_path / "desk", small_desk)
    assert ModelFolder(tmp_path / "desk").numbers() == [1, 2, 3, 4]


def test_means_are_over_intents_and_the_largest_loss_is_named(tmp_path, small_desk):
    told = play(tmp_path / "desk", small_desk)
    scores = [ClassScore("a", 1.0, 0.5), ClassScore("b", 0.5, 0.5), ClassScore("c", None, 0.25)]
    told = story.Story(**{**vars(told), "classes": scores})
    assert (told.old_before, told.old_after, told.new_after) == (0.75, 0.5, 0.25)
    assert told.all_after == pytest.approx(1.25 / 3)
    assert told.most_changed.name == "a"


def test_what_the_demo_prints_fits_eighty_columns(repcl, tmp_path, small_desk, monkeypatch):
    monkeypatch.setattr("repcl.cli.demo.story.bundled_desk", lambda: small_desk)
    monkeypatch.chdir(tmp_path)
    output = repcl("demo")
    assert output.code == 0
    assert max(map(len, output.out.splitlines())) <= 80
    assert (tmp_path / "runs/demo/report.html").is_file()


@pytest.mark.parametrize(("way", "method"), [(0, "sequential"), (1, "joint")])
def test_numbers_of_other_ways_are_those_of_the_stored_runs(way, method):
    stored = stored_runs()
    results = [run.result for run in RunStore(ROOT / "results/two-weeks/weeks" / method).runs()]
    assert len(results) == stored.rounds
    after = [result.accuracy_matrix[1] for result in results]
    found = stored.ways[way]
    assert found.old == pytest.approx(fmean(row[0] for row in after), abs=5e-4)
    assert found.new == pytest.approx(fmean(row[1] for row in after), abs=5e-4)
    assert found.all == pytest.approx(fmean(result.final_accuracy for result in results), abs=5e-4)


def test_the_stored_runs_learned_the_weeks_of_the_demo():
    weeks = [list(week) for week in bundled_desk().weeks]
    orders = [run.result.class_order for run in RunStore(ROOT / "results/two-weeks").runs()]
    assert orders == [weeks] * len(orders)


def test_the_command_of_the_stored_runs_is_that_of_their_results():
    command = next(iter(RunStore(ROOT / "results/two-weeks").runs())).result.command
    assert re.sub(r"\s+", " ", stored_runs().command) == command


def test_the_next_lines_begin_with_the_environment_where_repcl_is_no_command(tmp_path, monkeypatch):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "activate").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "sys", SimpleNamespace(prefix=str(tmp_path / ".venv")))
    monkeypatch.setattr(demo, "which", lambda _: None)
    assert demo.activation() == ["source .venv/bin/activate"]
    monkeypatch.setattr(demo, "which", lambda _: "/usr/bin/repcl")
    assert demo.activation() == []
