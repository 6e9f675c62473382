"""The paper as data agrees with itself and with preset `paper`."""

import pytest

from repcl.benchmarks import BENCHMARKS
from repcl.data import TaskStream
from repcl.experiments import plan_run
from repcl.experiments.paper.numbers import MAIN_BENCHMARKS, Published, is_papers_encoder, load_paper

RELATIONS = ("fewrel", "tacred")
every_benchmark = pytest.mark.parametrize("benchmark", MAIN_BENCHMARKS)


@every_benchmark
def test_main_and_full_have_ten_methods_and_aca_on_relations_only(benchmark):
    paper = load_paper()
    assert list(paper.main[benchmark]) == list(paper.full[benchmark])
    assert len(paper.main[benchmark]) == (10 if benchmark in RELATIONS else 9)
    assert ("aca" in paper.main[benchmark]) == (benchmark in RELATIONS)


@every_benchmark
def test_full_has_ten_tasks_and_the_forgetting_rate_of_main(benchmark):
    paper = load_paper()
    for method, values in paper.full[benchmark].items():
        assert len(values) == paper.tasks + 1
        assert values[-1] == paper.main[benchmark][method][1], method


def test_the_last_task_of_full_is_the_accuracy_of_main_but_for_the_noted_slip():
    paper = load_paper()
    differing = {
        (benchmark, method)
        for benchmark in MAIN_BENCHMARKS
        for method, values in paper.full[benchmark].items()
        if values[-2] != paper.main[benchmark][method][0]
    }
    assert differing == {("hwu64", "idbr")} == {(slip.benchmark, slip.method) for slip in paper.slips}
    assert paper.main["hwu64"]["idbr"][0] == 76.1
    assert paper.full["hwu64"]["idbr"][-2] == 76.2


@every_benchmark
def test_ablation_holds_five_rows_with_the_whole_method_as_in_main(benchmark):
    paper = load_paper()
    assert list(paper.ablation[benchmark]) == [
        "repcl",
        "repcl@no-con",
        "repcl@no-xmlm",
        "repcl@no-adv",
        "repcl@mlm",
    ]
    assert paper.ablation[benchmark]["repcl"] == paper.main[benchmark]["repcl"][0]


def test_memory_of_ten_is_the_main_table():
    paper = load_paper()
    assert list(paper.memory) == ["fewrel"]
    assert len(paper.memory["fewrel"]) == 9
    for method in ("fea", "aca", "repcl"):
        assert paper.memory["fewrel"][method] == paper.main["fewrel"][method][0]


def test_mutual_information_tables_agree_where_they_overlap():
    paper = load_paper()
    assert {benchmark: list(rows) for benchmark, rows in paper.information.items()} == {
        "fewrel": ["joint", "crl", "crecl", "fea"],
        "maven": ["joint", "crl", "crecl", "fea"],
    }
    assert paper.representation["fewrel"]["fea"][0] == paper.information["fewrel"]["fea"][0] == 2.35
    for method in ("fea", "repcl"):
        assert paper.representation["fewrel"][method][-1] == paper.main["fewrel"][method][0]


def test_all_accuracies_are_percent_and_fall_from_the_first_task_to_the_last():
    for rows in load_paper().full.values():
        for *accuracies, forgetting in rows.values():
            assert 100 > accuracies[0] > accuracies[-1] > 50
            assert 0 < forgetting < 50


@every_benchmark
def test_preset_paper_has_the_papers_hyperparameters(benchmark):
    stream = TaskStream(benchmark, BENCHMARKS[benchmark].kind, ())
    settings = plan_run("repcl", stream, preset="paper").settings
    expected = load_paper().hyperparameters[benchmark]
    assert {name: settings[name] for name in expected} == dict(expected)


def test_published_values_come_from_whichever_table_has_them():
    paper = load_paper()
    assert paper.published("fewrel", "repcl@no-adv") == Published(85.3)
    assert paper.published("fewrel", "fea@memory-20") == Published(85.0)
    assert paper.published("fewrel", "fea@infomax") == Published(84.7)
    found = paper.published("hwu64", "repcl")
    assert found is not None
    assert (found.accuracy, found.forgetting) == (84.8, 8.0)
    assert found.after_task[0] == 97.7
    assert found.after_task[-1] == 84.8


def test_nothing_is_published_for_other_data_or_other_methods():
    paper = load_paper()
    assert paper.published("demo", "repcl") is None
    assert paper.published("maven", "aca") is None
    assert paper.published("hwu64", "instant") is None


def test_only_bert_base_is_the_papers_encoder():
    assert is_papers_encoder(load_paper().encoder)
    assert not is_papers_encoder("minilm-l6")
