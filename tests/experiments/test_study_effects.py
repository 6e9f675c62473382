"""The effects of changes to RepCL, told apart by least squares: numbers worked out by hand."""

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks/study_effects.py"))
Trial, fit_effects = SCRIPT["Trial"], SCRIPT["fit_effects"]


def test_effects_that_are_made_at_once_are_told_apart():
    rounds, effects = {5: 80.0, 6: 90.0}, {"slow": 2.0, "no-clean": -1.0}
    mixtures = [(5, ()), (5, ("slow", "no-clean")), (6, ("slow",)), (6, ("no-clean",)), (6, ())]
    trials = [
        Trial(round, changes, rounds[round] + sum(effects[name] for name in changes))
        for round, changes in mixtures
    ]
    fit = fit_effects(trials)
    assert fit.noise == pytest.approx(0, abs=1e-9)
    assert {name: effect.points for name, effect in fit.effects.items()} == pytest.approx(effects)


def test_the_margin_of_a_single_change_is_that_of_a_t_test():
    # means 1 and 3, pooled variance (2 + 2) / 2 = 2, error sqrt(2 * (1/2 + 1/2)), t(2) at 97.5 % is 4.302653
    trials = [Trial(5, (), 0.0), Trial(5, (), 2.0), Trial(5, ("slow",), 2.0), Trial(5, ("slow",), 4.0)]
    fit = fit_effects(trials)
    effect = fit.effects["slow"]
    assert fit.noise == pytest.approx(2**0.5)
    assert effect.points == pytest.approx(2)
    assert effect.margin == pytest.approx(4.302653 * 2**0.5, rel=1e-6)
    # t = sqrt(2) with 2 degrees of freedom: p = 1 - t / sqrt(2 + t²)
    assert effect.p == pytest.approx(1 - 2**0.5 / 2)


def test_too_few_runs_are_told():
    with pytest.raises(SystemExit, match="Expected more runs than 2 to tell the changes apart, found 2"):
        fit_effects([Trial(5, (), 80.0), Trial(5, ("slow",), 81.0)])


def test_changes_are_read_off_the_settings_of_a_run():
    settings = {"learning_rate": 2e-5, "clean_weight": 1.0, "momentum": 0.98, "adversarial_steps": 2}
    assert SCRIPT["changes_in"](settings) == {"slow", "fast-momentum"}
