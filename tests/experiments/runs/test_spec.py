"""From a spec to a settled run: settings, folder, fingerprint, and what is refused before it starts."""

import pytest

from repcl.benchmarks import StreamSpec
from repcl.data import TaskStream
from repcl.errors import EncoderUnavailable, ResultMismatch, UnknownName
from repcl.experiments import RunOptions, RunSpec, run_experiment
from repcl.experiments.runs.spec import InputNotTaken
from repcl.methods.variants import variant_settings
from repcl.model import Processes
from tests.conftest import tiny_encoder, toy_task
from tests.experiments.runs.test_run import CHEAP, toy_stream


def test_a_run_is_settled_with_its_folder_title_and_log(tmp_path):
    run = RunSpec("fea@memory-5", toy_stream(), RunOptions(out=tmp_path)).resolve()
    assert run.plan.settings["memory_per_class"] == 5
    assert run.folder is not None
    assert run.folder.path == tmp_path / "toy/fea@memory-5/round-1"
    assert run.title == "toy fea@memory-5 round 1"
    assert run.error_log == tmp_path / "toy-fea@memory-5-round-1.error.txt"


def test_a_run_without_a_folder_for_results_has_none():
    assert RunSpec("fea", toy_stream()).resolve().folder is None


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(settings={"batch_size": 4}),
        RunOptions(preset="smoke"),
        RunOptions(encoder=tiny_encoder()),
        RunOptions(processes=Processes(precision="bf16")),
    ],
    ids=["setting", "preset", "encoder", "precision"],
)
def test_whatever_changes_numbers_changes_the_fingerprint(options):
    fingerprints = [
        RunSpec("fea", toy_stream(), one).resolve().fingerprint for one in (RunOptions(), options)
    ]
    assert fingerprints[0] != fingerprints[1]


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(threads=2),
        RunOptions(command="repcl bench"),
        RunOptions(processes=Processes(number=2, chunks=2)),
    ],
    ids=["threads", "command", "processes"],
)
def test_what_changes_no_number_leaves_the_fingerprint(options):
    fingerprints = [
        RunSpec("fea", toy_stream(), one).resolve().fingerprint for one in (RunOptions(), options)
    ]
    assert fingerprints[0] == fingerprints[1]


def test_a_method_that_does_not_take_the_input_is_refused_with_what_it_takes():
    with pytest.raises(InputNotTaken, match="aca takes relation input, not sentence"):
        RunSpec("aca", toy_stream()).resolve()


def test_an_encoder_that_is_not_there_is_refused_before_the_run(tmp_path):
    with pytest.raises(EncoderUnavailable, match="nowhere"):
        RunSpec("fea", toy_stream(), RunOptions(encoder=str(tmp_path / "nowhere"))).resolve()


def test_a_finished_run_is_known_unless_it_is_to_be_made_again(tmp_path):
    encoder = tiny_encoder()
    result = run_experiment("fea", toy_stream(), encoder=encoder, settings=CHEAP, out=tmp_path)
    again, fresh = (
        RunSpec(
            "fea", toy_stream(), RunOptions(encoder=encoder, settings=CHEAP, out=tmp_path, fresh=fresh)
        ).resolve()
        for fresh in (False, True)
    )
    assert again.finished == result
    assert fresh.finished is None


def test_a_folder_with_another_run_is_refused_before_the_run(tmp_path):
    encoder = tiny_encoder()
    run_experiment("fea", toy_stream(), encoder=encoder, settings=CHEAP, out=tmp_path)
    other = TaskStream("toy", "sentence", (toy_task("sentence", "fruit"),), round=1)
    with pytest.raises(ResultMismatch, match="other settings or other data; use --fresh"):
        RunSpec("fea", other, RunOptions(encoder=encoder, settings=CHEAP, out=tmp_path)).resolve()


def test_specs_of_one_stream_share_what_was_loaded():
    stream = StreamSpec("demo", tasks=3)
    assert RunSpec("fea", stream).load_stream() is RunSpec("repcl", stream).load_stream()


@pytest.mark.parametrize("number", ["\u00b2", "\u0665", "005", "9" * 5000, "-1", ""])
def test_a_size_of_the_memory_is_written_in_plain_digits(number):
    with pytest.raises(UnknownName):
        variant_settings("fea", f"memory-{number}")
