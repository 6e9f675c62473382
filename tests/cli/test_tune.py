"""`repcl tune` as typed: table, verdict and preset; errors in a sentence; `kill -9` and going on."""

import os
import re
import signal
import subprocess
import sys

import pytest

CHEAP = ("--preset", "smoke", "--workers", 1, "--device", "cpu")


def words(data_file, encoder_folder, out, *more):
    start = ("tune", "--benchmark", data_file, "--method", "fea", "--tasks", 4, "--encoder", encoder_folder)
    return [str(word) for word in (*start, "--out", out, *CHEAP, *more)]


def test_tune_prints_all_trials_and_writes_a_preset_that_bench_takes(
    repcl, data_file, encoder_folder, tmp_path
):
    output = repcl(*words(data_file, encoder_folder, tmp_path / "tune", "--trials", 3))
    assert output.code == 0, output.err
    assert re.search(r"trial.*score.*learning_rate.*head_learning_rate.*head_dropout", output.out)
    assert re.search(r"│ 0 preset", output.out)
    assert re.search(r"│ 2 ", output.out)
    assert "held-out texts, where one standard error is" in output.out
    preset = tmp_path / "tune/fea-tickets.toml"
    again = ("bench", "--benchmark", data_file, "--method", "fea", "--tasks", 2, "--out", tmp_path / "runs")
    output = repcl(*again, "--preset", preset, "--workers", 1, "--device", "cpu")
    assert output.code == 0, output.err


def test_tune_again_makes_only_the_trials_that_are_missing(repcl, data_file, encoder_folder, tmp_path):
    repcl(*words(data_file, encoder_folder, tmp_path / "tune", "--trials", 1))
    output = repcl(*words(data_file, encoder_folder, tmp_path / "tune", "--trials", 2))
    assert output.code == 0, output.err
    assert "trial 0 round 5:" not in output.out
    assert "trial 1 round 5: task 3 of 3 learned" in output.out


def test_a_reported_round_is_searched_with_a_warning(repcl, data_file, encoder_folder, tmp_path):
    output = repcl(*words(data_file, encoder_folder, tmp_path / "tune", "--trials", 1, "--round", 0))
    assert output.code == 0, output.err
    assert "Rounds 0 to 4 are usually the reported ones" in output.out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--method", "feaa"), "No method 'feaa'. Did you mean 'fea'?"),
        (("--method", "ncm"), "Nothing to search for ncm"),
        (("--benchmark", "hwu46"), "No benchmark 'hwu46'. Did you mean 'hwu64'?"),
        (("--tasks", "2"), "A search needs 3 tasks, tickets has 2"),
        (("--set", "batchsize=3"), "No setting 'batchsize'. Did you mean 'batch_size'?"),
        (("--set", "batch_size=0"), "batch_size = 0"),
        (("--space", "nowhere.toml"), "There is no file nowhere.toml"),
        (("--ray", "nowhere"), "--ray takes local, auto, HOST:PORT"),
        (("--preset", "cpuu"), "No preset 'cpuu'. Did you mean 'cpu'?"),
    ],
)
def test_bad_words_get_one_sentence_exit_code_2_and_nothing_is_written(
    repcl, data_file, encoder_folder, tmp_path, more, sentence
):
    output = repcl(*words(data_file, encoder_folder, tmp_path / "tune", "--trials", 1, *more))
    assert output.code == 2
    assert sentence in output.err
    assert "Traceback" not in output.err + output.out
    assert not (tmp_path / "tune").exists()


def test_other_settings_in_the_same_folder_are_refused(repcl, data_file, encoder_folder, tmp_path):
    repcl(*words(data_file, encoder_folder, tmp_path / "tune", "--trials", 1))
    output = repcl(
        *words(data_file, encoder_folder, tmp_path / "tune", "--trials", 1, "--set", "batch_size=4")
    )
    assert output.code == 2
    assert "holds a search with other settings, ranges or data; use --fresh or another --out" in output.err


def test_without_optuna_the_extra_is_named(repcl, data_file, encoder_folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    output = repcl(*words(data_file, encoder_folder, tmp_path / "tune", "--trials", 1))
    assert output.code == 2
    assert "pip install 'repcl[tune]'" in output.err
    assert not (tmp_path / "tune").exists()


def table(output: str) -> list[str]:
    return re.findall(r"^│.*$", output, flags=re.MULTILINE)


@pytest.mark.slow
def test_a_search_on_a_ray_cluster_finds_what_one_here_finds(repcl, data_file, encoder_folder, tmp_path):
    pytest.importorskip("ray")
    here = repcl(*words(data_file, encoder_folder, tmp_path / "here", "--trials", 2, "--workers", 2))
    there = repcl(
        *words(data_file, encoder_folder, tmp_path / "there", "--trials", 2, "--workers", 2, "--ray", "local")
    )
    assert there.code == 0, there.err
    assert len(table(there.out)) == 2
    assert table(there.out) == table(here.out)


@pytest.mark.slow
def test_a_killed_search_goes_on_to_the_same_table(data_file, encoder_folder, tmp_path):
    def run(out, kill_at: int | None = None) -> str:
        """Run the command in its own process group; kill it all at a line of its output."""
        command = [sys.executable, "-m", "repcl", *words(data_file, encoder_folder, out, "--trials", 4)]
        heard = []
        with subprocess.Popen(
            [*command, "--workers", "2"], stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            for number, line in enumerate(process.stdout, start=1):
                heard.append(line)
                if number == kill_at:
                    os.killpg(process.pid, signal.SIGKILL)
        return "".join(heard)

    run(tmp_path / "killed", kill_at=1)
    run(tmp_path / "killed", kill_at=5)
    whole = table(run(tmp_path / "whole"))
    assert len(whole) == 4
    assert table(run(tmp_path / "killed")) == whole
