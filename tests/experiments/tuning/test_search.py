"""The search: the preset first, never worse than it, the same trials however often it is stopped."""

from collections.abc import Sequence
from math import log10, sqrt
from pathlib import Path

import pytest

from repcl.benchmarks import StreamSpec, load_benchmark, load_stream
from repcl.errors import ResultMismatch
from repcl.experiments import plan_run
from repcl.experiments.runs.observers import Event, TaskEnds
from repcl.experiments.runs.pool import Failure
from repcl.experiments.runs.result import Result
from repcl.experiments.runs.spec import ResolvedRun, RunOptions
from repcl.experiments.tuning.outcome import preset_text, toml_value, verdict, write_preset
from repcl.experiments.tuning.search import (
    Search,
    SearchFailed,
    best_trial,
    plan_search,
    run_here,
    run_search,
)
from repcl.experiments.tuning.trials import Trial, TrialStore
from repcl.presets import load_preset
from tests.conftest import save_encoder, tiny_encoder, toy_example


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Path:
    """A folder with a tiny encoder and a user's data file of six classes."""
    folder = tmp_path_factory.mktemp("tune")
    encoder = tiny_encoder()
    save_encoder(encoder, folder / "encoder")
    topics = ("fruit", "vehicle", "weather", "place", "person", "conflict")
    rows = [toy_example("sentence", topic, n) for topic in topics for n in range(10)]
    lines = [f"{row.text} {number},{row.label}" for number, row in enumerate(rows)]
    (folder / "tickets.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return folder


def make_search(workshop: Path, out: Path, method: str = "fea", *, rounds=(5,), **changes) -> Search:
    encoder = str(workshop / "encoder")
    options = RunOptions(encoder=encoder, preset="smoke", device="cpu", **changes)
    streams = [StreamSpec(str(workshop / "tickets.csv"), tasks=6, round=number) for number in rounds]
    return plan_search(method, streams, options, out=out)


def closeness(run: ResolvedRun) -> float:
    """A made-up accuracy that is highest at a learning rate of 1e-4."""
    return round(0.9 - 0.3 * abs(log10(run.options.settings["learning_rate"] / 1e-4)), 3)


def pretend(runs: Sequence[ResolvedRun], *, workers: int, listener) -> list[Result | Failure]:
    """An engine without training."""
    return [Result.model_construct(final_accuracy=closeness(run)) for run in runs]


def ignore(trial: int, round: int, event: Event) -> None:
    pass


def go(search: Search, trials: int, engine=pretend, *, group: int = 1, **changes) -> list[Trial]:
    with TrialStore(search.folder, search.identity, search.space, group=group, **changes) as store:
        return run_search(search, store, trials=trials, engine=engine, listener=ignore)


def test_the_first_trial_is_the_presets_own_settings(workshop, tmp_path):
    search = make_search(workshop, tmp_path)
    assert go(search, 1)[0].settings == {
        "learning_rate": 5e-5,
        "head_learning_rate": 1e-3,
        "head_dropout": 0.5,
    }


def test_the_best_trial_is_better_than_the_preset_where_something_better_is_to_be_found(workshop, tmp_path):
    trials = go(make_search(workshop, tmp_path), 25)
    assert best_trial(trials).score > trials[0].score
    assert best_trial(trials).score == max(trial.score for trial in trials)


def test_of_equal_trials_the_preset_wins():
    trials = [Trial(number, {}, (score,)) for number, score in enumerate((0.5, 0.5, 0.4))]
    assert best_trial([*trials, Trial(3, {}, ())]).number == 0


def test_every_run_is_handed_three_tasks_without_test_texts(workshop, tmp_path):
    asked: list[ResolvedRun] = []

    def engine(runs, **others):
        asked.extend(runs)
        return pretend(runs, **others)

    go(make_search(workshop, tmp_path), 2, engine)
    assert len(asked) == 2
    for run in asked:
        whole, seen = load_stream(run.spec.stream), run.stream
        assert len(seen.tasks) == 3
        held_out = {example.text for task in seen.tasks for example in task.test}
        assert held_out <= {example.text for task in whole.tasks[:3] for example in task.train}
        assert not held_out & {example.text for task in whole.tasks for example in task.test}


def test_the_same_rounds_draw_the_same_trials_and_other_rounds_others(workshop, tmp_path):
    one, two, other = (
        go(make_search(workshop, tmp_path / name, rounds=(number,)), 15)
        for name, number in (("one", 5), ("two", 5), ("other", 6))
    )
    assert one == two
    assert [trial.settings for trial in one[1:]] != [trial.settings for trial in other[1:]]


@pytest.mark.parametrize("group", [1, 3])
def test_a_search_stopped_at_any_trial_goes_on_to_the_same_trials(workshop, tmp_path, group):
    whole = go(make_search(workshop, tmp_path / "whole"), 14, group=group)
    for stop in (0, 4, 12):

        def engine(runs, stop=stop, **others):
            if any(run.spec.trial == stop for run in runs):
                raise KeyboardInterrupt
            return pretend(runs, **others)

        search = make_search(workshop, tmp_path / f"stopped-{stop}")
        with pytest.raises(KeyboardInterrupt):
            go(search, 14, engine, group=group)
        assert go(search, 14, group=5) == whole  # a search keeps the group that it began with


def test_more_trials_may_be_asked_for_later_and_finished_ones_are_not_repeated(workshop, tmp_path):
    search = make_search(workshop, tmp_path)
    first = go(search, 4, group=3)

    def engine(runs, **others):
        assert min(run.spec.trial for run in runs) >= 4
        return pretend(runs, **others)

    whole = go(search, 12, engine, group=3)
    assert whole[:4] == first
    assert whole == go(make_search(workshop, tmp_path / "at-once"), 12, group=3)


def test_the_score_is_the_mean_over_rounds(workshop, tmp_path):
    def engine(runs, **others):
        shares = {5: 0.5, 6: 0.8}
        return [Result.model_construct(final_accuracy=shares[run.plan.round]) for run in runs]

    search = make_search(workshop, tmp_path, rounds=(5, 6))
    (trial,) = go(search, 1, engine)
    assert trial.accuracies == (0.5, 0.8)
    assert trial.score == pytest.approx(0.65)
    # two rounds of three classes with eight training texts, two of which are held out
    assert search.texts == (6, 6)
    assert search.standard_error(trial) == pytest.approx(sqrt(0.25 / 6 + 0.16 / 6) / 2)


def test_a_trial_that_fails_is_kept_as_failed_and_the_search_goes_on(workshop, tmp_path):
    def engine(runs, **others):
        failed = [Failure(run, "no memory", "the traceback") for run in runs]
        return failed if runs[0].spec.trial == 1 else pretend(runs, **others)

    search = make_search(workshop, tmp_path)
    trials = go(search, 3, engine)
    assert [trial.score is None for trial in trials] == [False, True, False]
    assert (search.folder / "trial-001.error.txt").read_text() == "the traceback"
    assert go(search, 4)[:3] == trials


def test_the_traceback_of_a_trial_is_a_file_of_its_own_and_may_hold_half_a_character(workshop, tmp_path):
    def engine(runs, **others):
        failed = [Failure(run, "no memory", "\ud800") for run in runs]
        return failed if runs[0].spec.trial == 1 else pretend(runs, **others)

    search = make_search(workshop, tmp_path)
    (tmp_path / "diary.txt").write_text("mine")
    go(search, 1)
    (search.folder / "trial-001.error.txt").symlink_to(tmp_path / "diary.txt")
    go(search, 2, engine)
    assert (search.folder / "trial-001.error.txt").read_text() == "\\ud800"
    assert (tmp_path / "diary.txt").read_text() == "mine"


def test_a_search_whose_first_trial_fails_ends_and_can_be_tried_again(workshop, tmp_path):
    def engine(runs, **others):
        return [Failure(run, "no memory", "") for run in runs]

    search = make_search(workshop, tmp_path)
    with pytest.raises(SearchFailed, match="The preset's own settings cannot be tried: no memory"):
        go(search, 3, engine)
    assert len(go(search, 3)) == 3


def test_a_folder_with_another_search_is_refused_unless_fresh(workshop, tmp_path):
    go(make_search(workshop, tmp_path), 2)
    other = make_search(workshop, tmp_path, settings={"batch_size": 4})
    with pytest.raises(ResultMismatch, match="use --fresh or another --out"):
        go(other, 2)
    assert len(go(other, 1, fresh=True)) == 1


def test_two_searches_at_once_in_one_folder_are_noticed(workshop, tmp_path):
    search = make_search(workshop, tmp_path)

    def engine(runs, **others):
        go(search, 1)
        return pretend(runs, **others)

    with pytest.raises(ResultMismatch, match="Another search is writing"):
        go(search, 1, engine)


def test_a_variant_keeps_what_makes_it_one(workshop, tmp_path):
    search = make_search(workshop, tmp_path, "repcl@no-con", settings={"temperature": 0.1})
    assert "contrast" not in search.space
    assert "temperature" not in search.space
    assert "[methods.repcl]" in (text := preset_text(search, go(search, 1), "repcl tune"))
    assert 'contrast = "supinfonce"' in text  # `--method repcl@no-con` takes it out again


def test_the_preset_file_holds_the_best_settings_and_the_presets_others(workshop, tmp_path):
    search = make_search(workshop, tmp_path, settings={"batch_size": 4})
    trials = go(search, 20)
    path = write_preset(search, trials, "repcl tune --method fea")
    preset = load_preset(str(path))
    chosen = {**search.plans[0].settings, **best_trial(trials).settings}
    # TOML cannot say None, which is the default of what is None
    expected = {key: value for key, value in chosen.items() if value is not None}
    assert path == tmp_path / "fea-tickets.toml"
    assert preset.settings_for("fea", "anything", "sentence") == expected
    assert expected["batch_size"] == 4
    assert preset.encoder == str(workshop / "encoder")
    assert preset.settings_for("repcl", "demo", "sentence") == load_preset("smoke").settings_for(
        "repcl", "demo", "sentence"
    )
    assert path.read_text().startswith("# Found by: repcl tune --method fea\n# 20 trials")


@pytest.mark.parametrize("method", ["kdrk", "crecl", "instant"])
def test_all_settings_survive_the_preset_file(workshop, tmp_path, method):
    search = make_search(workshop, tmp_path, method)
    path = write_preset(search, go(search, 1, run_here if method == "instant" else pretend), "repcl tune")
    stream = load_benchmark("demo", round=0)
    assert plan_run(method, stream, preset=str(path)).settings == search.plans[0].settings


@pytest.mark.parametrize(
    ("row", "settings"),
    [("duet@statistics", {"maps": 2}), ("duet", {"trained": "fea"}), ("duet@memory-5", {})],
)
def test_the_preset_file_of_a_duet_gives_its_settings_again(workshop, tmp_path, row, settings):
    search = make_search(workshop, tmp_path, row, settings=settings)
    path = write_preset(search, go(search, 1), "repcl tune")
    stream = load_benchmark("demo", round=0)
    assert plan_run(row, stream, preset=str(path)).settings == search.plans[0].settings


def test_lists_and_quotes_are_written_as_toml():
    assert toml_value(("a", 'b "quoted"')) == '["a", "b \\"quoted\\""]'
    assert toml_value(5e-05) == "5e-05"
    assert toml_value(False) == "false"


def test_the_verdict_names_difference_standard_error_and_texts(workshop, tmp_path):
    search = make_search(workshop, tmp_path)
    trials = [Trial(0, {}, (0.5,)), Trial(1, {}, (0.75,))]
    # six held-out texts: sqrt(0.75 · 0.25 / 6) = 17.7 points
    assert verdict(search, trials).startswith(
        "Best: trial 1 with 75.0, 25.0 points above the preset's own settings (50.0), over 6 held-out texts, "
        "where one standard error is 17.7 points. The difference may well be chance"
    )
    assert verdict(search, trials[:1]).startswith("No trial was better than the preset's own settings: 50.0")


def test_a_real_search_interrupted_within_a_run_ends_with_the_same_trials(workshop, tmp_path):
    whole = go(make_search(workshop, tmp_path / "whole"), 3, run_here)
    search = make_search(workshop, tmp_path / "stopped")
    heard: list[type] = []

    def interrupt(trial: int, round: int, event: Event) -> None:
        heard.append(type(event))
        if trial == 1 and heard.count(TaskEnds) == 5:  # trial 1 has two of its three tasks behind it
            raise KeyboardInterrupt

    with (
        TrialStore(search.folder, search.identity, search.space, group=1) as store,
        pytest.raises(KeyboardInterrupt),
    ):
        run_search(search, store, trials=3, engine=run_here, listener=interrupt)
    assert go(search, 3, run_here) == whole
