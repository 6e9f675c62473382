"""The plan of the long runs: what comes first, what is skipped, where results go. Nothing is run here."""

import runpy
import shlex
from argparse import Namespace
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from repcl.benchmarks import BENCHMARKS
from repcl.experiments import RunSpec, RunStore
from repcl.experiments.runs.observers import Event
from repcl.experiments.runs.spec import RunOptions, settle_settings
from repcl.methods import METHODS
from repcl.methods.variants import split_variant, variant_settings
from tests.conftest import tiny_encoder
from tests.experiments.runs.test_run import CHEAP, toy_stream

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks/evidence.py"))
LISTS, Wanted, plan = (SCRIPT[name] for name in ("LISTS", "Wanted", "plan"))
TABLES = plan(LISTS["tables"])


def titles(jobs) -> list[str]:
    return [f"{job.wanted.benchmark} {job.method} {job.round}" for job in jobs]


def test_a_round_of_all_comes_before_the_next_and_learners_that_take_seconds_come_first():
    wanted = [Wanted("hwu64", ("fea", "ncm"), range(2)), Wanted("maven", ("ncm", "crl"), range(1), "fifty")]
    assert titles(plan(wanted)) == [
        "hwu64 ncm 0",
        "maven ncm 0",
        "hwu64 fea 0",
        "maven crl 0",
        "hwu64 ncm 1",
        "hwu64 fea 1",
    ]


def test_all_planned_runs_can_be_made():
    for job in [*TABLES, *plan(LISTS["study"])]:
        name, variant = split_variant(job.method)
        variant_settings(name, variant)
        assert name in METHODS
        assert job.wanted.benchmark in BENCHMARKS


def test_only_the_runs_that_options_name_are_chosen():
    named = Namespace(benchmark=["hwu64"], method=["fea", "duet"], round=[1])
    assert titles(job for job in TABLES if SCRIPT["is_chosen"](job, named)) == ["hwu64 fea 1", "hwu64 duet 1"]
    unnamed = Namespace(benchmark=None, method=None, round=None)
    assert all(SCRIPT["is_chosen"](job, unnamed) for job in TABLES)


def test_a_row_that_comes_out_of_a_duet_names_the_duet():
    for row, method in (("repcl", "duet"), ("duet@statistics", "duet"), ("repcl@memory-5", "duet@memory-5")):
        named = Namespace(benchmark=["hwu64"], method=[row], round=[1])
        assert titles(job for job in TABLES if SCRIPT["is_chosen"](job, named)) == [f"hwu64 {method} 1"]


def test_no_run_is_planned_twice():
    for jobs in LISTS.values():
        made = [(job.wanted.folder, *titles([job])) for job in plan(jobs)]
        assert len(made) == len({*made})


def test_capped_runs_do_not_mix_with_whole_ones():
    assert {job.wanted.folder for job in TABLES if job.wanted.texts} == {"fifty"}
    assert {job.wanted.folder for job in TABLES if not job.wanted.texts} == {""}


def test_the_study_stays_away_from_the_rounds_that_are_reported():
    assert {job.round for job in plan(LISTS["study"])} == {5, 6, 7, 8, 9}
    assert all(job.round < 5 for job in TABLES)


def test_each_change_of_the_study_is_made_in_half_of_the_mixtures_of_a_round():
    made = [(round, names.split()) for round, names in SCRIPT["MIXTURES"]]
    changes = {name for _, names in made for name in names}
    assert len(changes) == 7
    for round in SCRIPT["STUDY_ROUNDS"]:
        of_round = [names for one, names in made if one == round]
        # the fourth of round 8 is the run in which nothing is changed
        assert len(of_round) == (3 if round == 8 else 4)
        for change in changes:
            assert sum(change in names for names in of_round) == 2


def test_any_two_changes_of_the_study_meet_in_a_quarter_of_the_mixtures():
    made = [names.split() for _, names in SCRIPT["MIXTURES"]]
    changes = sorted({name for names in made for name in names})
    for one, other in combinations(changes, 2):
        assert sum(one in names and other in names for names in made) == 4


def test_a_mixture_has_the_settings_of_all_its_variants():
    first = next(job for job in plan(LISTS["study"]) if job.wanted.folder == "study-mixed/1")
    assert (first.method, first.round) == ("repcl", 5)
    assert first.spec(Path("x")).options.settings == {
        "generation_share": 1.0,
        "generation_weight": 0.02,
        "learning_rate": 2e-5,
    }


def test_repcl_is_not_trained_where_a_duet_gives_its_row():
    of_tables = {(job.wanted.benchmark, job.method) for job in TABLES}
    assert not any(method in ("repcl", "duet@statistics") for _, method in of_tables)
    assert ("hwu64", "duet") in of_tables


def test_the_command_of_a_run_is_one_that_repcl_bench_takes():
    (job,) = [one for one in TABLES if titles([one]) == ["fewrel duet 0"]]
    words = shlex.split(job.command(Path("runs/evidence/fifty")))
    assert words == [
        *("repcl", "bench", "--benchmark", "fewrel", "--method", "duet", "--round", "0"),
        *("--max-train-per-class", "50", "--max-test-per-class", "50", "--with-parts"),
        *("--out", "runs/evidence/fifty"),
    ]
    studied = [job for job in plan(LISTS["study"]) if "mixed" not in job.wanted.folder]
    changed = {job.method: job for job in studied if job.wanted.settings}
    settings = {method: job.spec(Path("x")).options.settings for method, job in changed.items()}
    assert settings == {"fea": {"learning_rate": 2e-5}, "repcl": {"speed": "fast"}}


def test_a_stored_command_names_no_folder_of_this_machine():
    (job,) = [one for one in TABLES if titles([one]) == ["hwu64 fea 0"]]
    options = job.spec(Path("/somewhere/else")).options
    assert options.out == Path("/somewhere/else")
    assert options.command == "repcl bench --benchmark hwu64 --method fea --round 0 --out runs/evidence"


@pytest.fixture
def run(tmp_path):
    """A duet on a toy stream, in a folder of capped runs."""
    options = RunOptions(
        encoder=tiny_encoder(), settings=CHEAP, out=tmp_path / "out/fifty", device="cpu", with_parts=True
    )
    return RunSpec("duet", toy_stream(), options).resolve()


def unheard(event: Event) -> None:
    pass


def test_all_rows_of_a_run_are_copied_with_predictions_and_then_taken_for_stored(run, tmp_path):
    out, results = tmp_path / "out", tmp_path / "results"
    rows = SCRIPT["rows_of"](run)
    assert [row.plan.row for row in rows] == ["duet", "repcl", "duet@statistics"]
    stale = results / "fifty/toy/repcl/round-1/analysis.json"
    stale.parent.mkdir(parents=True)
    stale.write_text("{}")
    assert not any(SCRIPT["is_stored"](row, results / "fifty") for row in rows)
    SCRIPT["make_and_store"](run, unheard, out=out, results=results)
    assert all(SCRIPT["is_stored"](row, results / "fifty") for row in rows)
    for row in ("duet", "repcl", "duet@statistics"):
        names = sorted(path.name for path in (results / f"fifty/toy/{row}/round-1").iterdir())
        assert names == ["predictions.jsonl.gz", "result.json"]
    assert not SCRIPT["is_stored"](replace(rows[0], fingerprint="of other settings"), results / "fifty")
    (results / "fifty/toy/duet/round-1/predictions.jsonl.gz").unlink()
    assert not SCRIPT["is_stored"](rows[0], results / "fifty")


@pytest.mark.parametrize("folder", ["hwu64", "banking77", "clinc150", "fifty"])
def test_every_stored_run_of_the_tables_has_the_settings_of_todays_preset(folder):
    results = [run.result for run in RunStore(ROOT / "results" / folder).runs()]
    assert results
    for result in results:
        today = settle_settings(result.row, result.benchmark, BENCHMARKS[result.benchmark].kind)
        stored = type(today).model_validate(result.settings)
        assert stored == today, f"{result.benchmark} {result.row} round {result.round}: run it again"
