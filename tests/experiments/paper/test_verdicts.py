"""Verdicts on the paper's claims, from invented runs whose answer is known."""

from pathlib import Path

import pytest

from repcl.evaluation import TestedExample
from repcl.experiments.paper.numbers import load_paper
from repcl.experiments.paper.recipes import RECIPES
from repcl.experiments.paper.verdicts import CLAIMS, judge_in_brief, verdict_table
from repcl.experiments.reports.grouping import load_runs
from repcl.experiments.reports.write import write_report
from repcl.methods import METHODS
from tests.experiments.made_up import write_run


def write_accuracies(folder: Path, row: str, rights: list[int], *, benchmark: str = "hwu64") -> None:
    """A run of a hundred texts for each round, so many of them right."""
    for round, right in enumerate(rights):
        tested = [TestedExample(str(n), 0, "a", ("a" if n < right else "b",)) for n in range(100)]
        write_run(folder, row, tested, classes=[["a", "b"]], benchmark=benchmark, round=round)


def verdicts(folder: Path, recipe: str) -> list[list[str]]:
    """Claim, verdict and reason of each line."""
    table = verdict_table([recipe], load_runs(folder), load_paper())
    return [] if table is None else [[row[1].text, row[3].text, row[4].text] for row in table.rows]


def test_every_recipe_has_claims_about_rows_that_can_be_run() -> None:
    assert CLAIMS.keys() == RECIPES.keys()
    for name, claims in CLAIMS.items():
        rows = {row for claim in claims for pair in claim.pairs for row in pair}
        assert rows <= {*RECIPES[name].methods, "kcn@paired"}  # judged where it was run
        assert all(row.partition("@")[0] in METHODS for row in rows)


def test_a_claim_holds_where_every_pair_differs_as_claimed(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82, 84, 86])
    for row, lead in (("no-con", 9), ("no-xmlm", 8), ("no-adv", 10)):
        write_accuracies(tmp_path, f"repcl@{row}", [80 - lead, 82 - lead, 84 - lead, 87 - lead])
    claim, verdict, why = verdicts(tmp_path, "ablation")[0]
    assert (claim, verdict) == ("Each of RepCL's three parts helps.", "holds")
    assert why.startswith(
        "Smallest difference: repcl +7.8 points against repcl@no-xmlm over 4 rounds, p < 0.001"
    )


def test_a_claim_does_not_hold_where_one_pair_differs_the_other_way(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82, 84, 86])
    write_accuracies(tmp_path, "repcl@no-con", [70, 72, 74, 77])
    write_accuracies(tmp_path, "repcl@no-adv", [85, 87, 89, 92])
    _, verdict, why = verdicts(tmp_path, "ablation")[0]
    assert verdict == "does not hold"
    assert why.startswith("repcl -5.2 points against repcl@no-adv over 4 rounds")


def test_an_open_claim_is_told_in_brief_by_the_comparisons_that_speak_for_it(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82, 84, 86])
    write_accuracies(tmp_path, "fea", [79, 83, 82, 86])  # differences 1, -1, 2, 0
    write_accuracies(tmp_path, "crl", [70, 72, 74, 77])
    write_accuracies(tmp_path, "emar", [81, 81, 84, 87])  # differences -1, 1, 0, -1
    (runs,) = load_runs(tmp_path)
    assert judge_in_brief(CLAIMS["main"][0], runs, load_paper()) == (
        "\u201cRepCL ends above every baseline\u201d **cannot be told** here. "
        "The difference is as claimed in 2 of 3 comparisons, beyond chance in 1 (crl)."
    )
    assert judge_in_brief(CLAIMS["ablation"][0], runs, load_paper()) is None


def test_a_brief_verdict_says_which_comparisons_rest_on_the_texts_of_one_round(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [90, 91])
    write_accuracies(tmp_path, "kcn", [50])
    (runs,) = load_runs(tmp_path)
    told = judge_in_brief(CLAIMS["main"][0], runs, load_paper()) or ""
    assert "in 1 of 1 comparisons, beyond chance in 1 (kcn in round 0)." in told


def test_a_claim_that_does_not_hold_is_told_in_brief_with_the_comparison_that_speaks_against_it(
    tmp_path: Path,
) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82, 84, 86])
    write_accuracies(tmp_path, "fea", [85, 87, 89, 92])
    (runs,) = load_runs(tmp_path)
    told = judge_in_brief(CLAIMS["main"][0], runs, load_paper()) or ""
    assert "**does not hold** here. repcl -5.2 points against fea over 4 rounds" in told


def test_what_a_test_does_not_show_cannot_be_told_and_has_the_rounds_that_would_show_it(
    tmp_path: Path,
) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82, 84, 86])
    write_accuracies(tmp_path, "repcl@mlm", [79, 83, 82, 86])  # differences 1, -1, 2, 0
    # mean 0.5 over a standard deviation of 1.29: an effect of 0.39
    assert verdicts(tmp_path, "ablation") == [
        [
            "XMLM is better than plain MLM.",
            "cannot be told",
            "repcl +0.5 points against repcl@mlm over 4 rounds, p = 0.495, 55 rounds needed.",
        ]
    ]


def test_rows_with_one_round_or_none_are_named(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82])
    write_accuracies(tmp_path, "fea", [70])
    for path in tmp_path.rglob("predictions*"):  # without them no text can be compared
        path.unlink()
    _, verdict, why = verdicts(tmp_path, "main")[0]
    assert verdict == "cannot be told"
    # the paper has no ACA on intents
    assert (
        why == "No test is possible: repcl +10.0 points against fea. "
        "Not run: idbr, kcn, kdrk, emar, rp_cre, crl, crecl."
    )


def test_a_baseline_is_judged_in_both_of_its_forms_where_both_were_run(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82, 84, 86])
    write_accuracies(tmp_path, "kcn", [70, 72, 74, 77])
    write_accuracies(tmp_path, "kcn@paired", [81, 83, 85, 88])
    _, verdict, why = verdicts(tmp_path, "main")[0]
    assert verdict == "does not hold"
    assert why.startswith("repcl -1.2 points against kcn@paired over 4 rounds")


def test_what_several_rows_show_in_one_round_is_named_where_no_test_is_possible(tmp_path: Path) -> None:
    for row, wrong in (("repcl", 10), ("fea", 50), ("crl", 5)):
        tested = [
            *(TestedExample(f"a{n}", 0, "a", ("a", "b" if n < wrong else "a")) for n in range(100)),
            TestedExample("b", 1, "b", ("b",)),
        ]
        write_run(tmp_path, row, tested, classes=[["a"], ["b"]], benchmark="demo")
    assert verdicts(tmp_path, "main")[1][2] == (
        "No test is possible: repcl -5.0 points of forgetting avoided against crl, +40.0 against fea."
    )


def test_a_row_that_learned_fewer_tasks_says_nothing_about_the_end(tmp_path: Path) -> None:
    for row, right in (("repcl", 80), ("fea", 50)):
        write_accuracies(tmp_path, row, [right, right + 1])
    both = [TestedExample("a", 0, "a", ("a", "a")), TestedExample("c", 1, "c", ("c",))]
    write_run(tmp_path, "joint", both, classes=[["a", "b"], ["c"]], benchmark="hwu64")
    assert verdicts(tmp_path, "main") == []


def test_a_single_shared_round_is_judged_by_its_texts(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82])
    write_accuracies(tmp_path, "repcl@mlm", [70])  # ten texts are right in repcl only: p = 2 / 2^10
    assert verdicts(tmp_path, "ablation")[0][1:] == [
        "holds in round 0",
        "repcl +10.0 points against repcl@mlm over the 100 texts of round 0, p = 0.002.",
    ]


def test_two_shared_rounds_are_too_few_for_a_t_test_and_are_judged_by_the_texts_of_the_first(
    tmp_path: Path,
) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82])
    write_accuracies(tmp_path, "repcl@mlm", [70, 60])
    assert verdicts(tmp_path, "ablation")[0][1:] == [
        "holds in round 0",
        "repcl +10.0 points against repcl@mlm over the 100 texts of round 0, p = 0.002.",
    ]


def test_texts_of_one_round_may_speak_against_a_claim(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [70])
    write_accuracies(tmp_path, "repcl@mlm", [80])
    assert verdicts(tmp_path, "ablation") == [
        [
            "XMLM is better than plain MLM.",
            "does not hold in round 0",
            "repcl -10.0 points against repcl@mlm over the 100 texts of round 0, p = 0.002.",
        ]
    ]


def test_texts_that_show_nothing_leave_a_claim_open(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80])
    write_accuracies(tmp_path, "repcl@mlm", [79])
    assert verdicts(tmp_path, "ablation")[0][1:] == [
        "cannot be told",
        "repcl +1.0 points against repcl@mlm over the 100 texts of round 0, p = 1.000.",
    ]


def test_forgetting_is_not_judged_by_texts(tmp_path: Path) -> None:
    for row, wrong in (("repcl", 1), ("fea", 50)):
        tested = [
            *(TestedExample(f"a{n}", 0, "a", ("a", "b" if n < wrong else "a")) for n in range(100)),
            TestedExample("b", 1, "b", ("b",)),
        ]
        write_run(tmp_path, row, tested, classes=[["a"], ["b"]], benchmark="demo")
    claim, verdict, why = verdicts(tmp_path, "main")[1]
    assert (claim, verdict) == ("RepCL forgets less than every baseline.", "cannot be told")
    assert why == "No test is possible: repcl +49.0 points of forgetting avoided against fea."


def test_on_data_that_the_paper_does_not_have_a_claim_holds_for_the_rows_run(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82, 85], benchmark="demo")
    write_accuracies(tmp_path, "fea", [70, 72, 74], benchmark="demo")
    _, verdict, why = verdicts(tmp_path, "main")[0]
    assert verdict == "holds for the rows run"
    assert why.endswith("Not run: idbr, kcn, kdrk, emar, rp_cre, crl, crecl, aca.")


def test_rows_of_other_rounds_are_not_said_to_be_missing(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82, 84, 86])
    write_accuracies(tmp_path, "repcl@no-con", [70, 72, 74, 77])
    write_accuracies(tmp_path, "repcl@no-adv", [70, 72, 74, 77])
    tested = [TestedExample(str(n), 0, "a", ("a",)) for n in range(100)]
    write_run(tmp_path, "repcl@no-xmlm", tested, classes=[["a", "b"]], benchmark="hwu64", round=7)
    _, verdict, why = verdicts(tmp_path, "ablation")[0]
    assert (verdict, why) == ("cannot be told", "No round in common, or not alike: repcl@no-xmlm.")


def test_a_row_whose_partner_was_not_run_is_not_called_unlike(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82, 85], benchmark="demo")
    write_accuracies(tmp_path, "fea", [70, 72, 74], benchmark="demo")
    write_accuracies(tmp_path, "repcl@memory-5", [75, 77, 80], benchmark="demo")
    _, verdict, why = verdicts(tmp_path, "memory")[0]
    assert verdict == "holds for the rows run"
    assert why.endswith(
        "Not run: fea@memory-5, aca@memory-5, aca, repcl@memory-20, fea@memory-20, aca@memory-20."
    )


def test_less_forgetting_speaks_for_repcl(tmp_path: Path) -> None:
    for row, lost in (("repcl", [1, 2, 1]), ("fea", [50, 52, 55])):
        for round, wrong in enumerate(lost):
            tested = [
                *(TestedExample(f"a{n}", 0, "a", ("a", "b" if n < wrong else "a")) for n in range(100)),
                TestedExample("b", 1, "b", ("b",)),
            ]
            write_run(tmp_path, row, tested, classes=[["a"], ["b"]], benchmark="demo", round=round)
    claim, verdict, _ = verdicts(tmp_path, "main")[1]
    assert (claim, verdict) == ("RepCL forgets less than every baseline.", "holds for the rows run")


@pytest.mark.parametrize("recipe", RECIPES)
def test_without_any_of_its_rows_a_recipe_has_no_verdict(tmp_path: Path, recipe: str) -> None:
    write_accuracies(tmp_path, "sequential", [10, 12])
    assert verdicts(tmp_path, recipe) == []


def test_a_report_of_a_recipe_shows_its_verdicts(tmp_path: Path) -> None:
    write_accuracies(tmp_path, "repcl", [80, 82])
    write_accuracies(tmp_path, "repcl@mlm", [79, 83])
    (tmp_path / "recipes.json").write_text('["ablation"]')
    write_report(tmp_path, load_runs(tmp_path))
    assert "cannot be told" in (tmp_path / "tables/paper-ablation-verdicts.md").read_text()
    assert "XMLM is better than plain MLM." in (tmp_path / "report.html").read_text(encoding="utf-8")
