"""The analysis of real, tiny runs."""

import pytest

from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.data import TaskStream
from repcl.experiments import StoredRun, run_experiment
from repcl.experiments.representations.analysis import AnalysisSpec, analyze_run, perform_analysis
from repcl.experiments.runs.pool import perform_all
from tests.conftest import tiny_encoder, toy_task
from tests.experiments.runs.test_run import CHEAP


def stream() -> TaskStream:
    tasks = [("fruit", "vehicle"), ("weather", "place"), ("person", "conflict")]
    return TaskStream("toy", "sentence", tuple(toy_task("sentence", *topics) for topics in tasks))


def run(out, method, **settings):
    encoder = tiny_encoder()
    result = run_experiment(
        method, stream(), encoder=encoder, settings=settings, out=out, save_representations=True
    )
    return StoredRun(out / f"toy/{method}/round-0", result)


def test_a_frozen_encoder_transfers_nothing_and_does_not_move(tmp_path):
    found = analyze_run(run(tmp_path, "ncm"), EstimatorSettings()).representations
    assert found is not None
    assert found.forward_transfer == {1: 0.0, 5: 0.0, 10: 0.0}
    assert found.masked_backward_transfer == 0
    assert [movement.moved for movement in found.movements] == [0.0, 0.0]
    assert found.untouched == found.last


def test_a_trained_encoder_moves(tmp_path):
    found = analyze_run(
        run(tmp_path, "fea", **CHEAP, learning_rate=1e-3), EstimatorSettings()
    ).representations
    assert found is not None
    assert all(movement.moved > 0 for movement in found.movements)
    assert len(found.steps_to_halve) == 3


def test_joint_is_judged_by_its_final_model(tmp_path):
    found = analyze_run(run(tmp_path, "joint", initial_epochs=1), EstimatorSettings()).representations
    assert found is not None
    assert found.first == found.last != found.untouched
    assert found.movements == []
    assert found.forward_transfer == {1: None, 5: None, 10: None}


@pytest.mark.slow
def test_two_processes_find_the_same_as_one(tmp_path):
    runs = [run(tmp_path, "ncm"), run(tmp_path, "fea", **CHEAP)]
    specs = [AnalysisSpec(one, EstimatorSettings(), fresh=True) for one in runs]
    one, two = (
        perform_all(specs, perform_analysis, workers=workers, listener=lambda index, event: None)
        for workers in (1, 2)
    )
    assert one == two
