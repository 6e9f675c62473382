import json
import re

import pytest

from repcl.benchmarks import StreamSpec
from repcl.cli.console import make_console
from repcl.cli.runs import note_idle_options
from repcl.methods import METHODS
from repcl.presets import load_preset, parse_overrides

CHEAP = ("--preset", "smoke", "--workers", 1, "--device", "cpu")


def bench(repcl, data_file, encoder_folder, out, *more):
    words = ("bench", "--benchmark", data_file, "--method", "fea", "--tasks", 2, "--encoder", encoder_folder)
    return repcl(*words, "--out", out, *CHEAP, *more)


def test_bench_on_a_users_file_prints_the_table_and_writes_result_and_report(
    repcl, data_file, encoder_folder, tmp_path
):
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs")
    assert output.code == 0, output.err
    assert re.search(r"method.*T1.*T2.*accuracy.*forgetting", output.out)
    assert (tmp_path / "runs/report.html").is_file()
    result = json.loads((tmp_path / "runs/tickets/fea/round-0/result.json").read_text())
    assert result["benchmark"] == "tickets"
    assert result["command"].startswith("repcl bench")


def test_a_method_that_does_not_take_the_input_is_a_row_of_dashes_and_no_failure(
    repcl, data_file, encoder_folder, tmp_path
):
    words = ("--benchmark", data_file, "--method", "aca", "--encoder", encoder_folder, "--out", tmp_path)
    output = repcl("bench", *words, *CHEAP)
    assert output.code == 0, output.err
    assert "Skipped: aca takes relation input, not sentence." in output.out
    assert re.search(r"│ aca +│ +– │ +– │ +– │", output.out)


def test_parts_of_methods_without_any_are_said_to_have_no_effect(repcl, data_file, encoder_folder, tmp_path):
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs", "--with-parts")
    assert output.code == 0, output.err
    assert "Note: --with-parts has no effect: only a duet has parts." in output.out


def test_a_protocol_that_a_file_does_not_have_is_said_to_have_no_effect(
    repcl, data_file, encoder_folder, tmp_path
):
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs", "--protocol", "paper")
    assert output.code == 0, output.err
    assert f"Note: --protocol paper has no effect on {data_file}" in output.out.replace("\n", "")


@pytest.mark.parametrize(
    ("name", "options", "notes"),
    [
        ("hwu64", {"protocol": "paper"}, []),
        ("fewrel", {"protocol": "paper"}, ["--protocol paper has no effect on fewrel"]),
        ("fewrel", {"label_column": "class"}, ["--label-column have no effect on fewrel"]),
        ("tickets.csv", {"label_column": "class"}, []),
    ],
)
def test_options_about_data_that_do_nothing_are_named(name, options, notes, capsys):
    note_idle_options([StreamSpec(name=name, **options)], make_console())
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("Note:") == len(notes)
    assert all(note in said for note in notes)


def test_a_row_that_comes_out_of_a_duet_is_shown_and_not_trained_again(
    repcl, data_file, encoder_folder, tmp_path
):
    words = ("--benchmark", data_file, "--tasks", 2, "--encoder", encoder_folder, "--out", tmp_path, *CHEAP)
    output = repcl("bench", *words, "--method", "repcl", "--method", "duet", "--with-parts", "--fresh")
    assert output.code == 0, output.err
    assert re.search(r"│ repcl +│ +1 │", output.out)
    assert "tickets repcl round 0: task" not in output.out
    assert "no effect" not in output.out


def test_parts_of_a_duet_that_was_made_without_them_are_refused_before_anything_runs(
    repcl, data_file, encoder_folder, tmp_path
):
    words = ("--benchmark", data_file, "--tasks", 2, "--encoder", encoder_folder, "--out", tmp_path, *CHEAP)
    assert repcl("bench", *words, "--method", "duet").code == 0
    output = repcl("bench", *words, "--method", "fea", "--method", "duet", "--with-parts")
    assert output.code == 2
    assert "made without --with-parts" in output.err
    assert not (tmp_path / "tickets/fea").exists()


@pytest.mark.parametrize("command", ["bench", "tune"])
def test_chosen_rounds_and_their_number_together_are_refused(repcl, data_file, command):
    words = ("--benchmark", data_file, "--method", "fea", "--out", "x", "--round", 3, "--rounds", 2)
    output = repcl(command, *words)
    assert output.code == 2
    assert "Expected --round or --rounds, found both" in output.err


def test_bench_again_does_not_run_again(repcl, data_file, encoder_folder, tmp_path):
    bench(repcl, data_file, encoder_folder, tmp_path / "runs")
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs")
    assert output.code == 0
    assert "task 1" not in output.out


def test_bench_with_other_settings_in_the_same_folder_ends_with_2(repcl, data_file, encoder_folder, tmp_path):
    bench(repcl, data_file, encoder_folder, tmp_path / "runs")
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs", "--set", "batch_size=4")
    assert output.code == 2
    assert "use --fresh or another --out" in output.err


def test_a_run_that_fails_before_anything_is_written_is_listed_with_its_traceback_in_a_file(
    repcl, data_file, encoder_folder, tmp_path
):
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs", "--device", "cuda:99")
    assert output.code == 2
    log = tmp_path / "runs/tickets-fea-round-0.error.txt"
    assert re.search(rf"Failed: tickets fea round 0: .*\(see {log}\)", output.out)
    assert "\nTraceback (most recent call last)" in log.read_text()


def test_a_link_in_place_of_the_traceback_is_neither_followed_nor_replaced(
    repcl, data_file, encoder_folder, tmp_path
):
    (tmp_path / "runs").mkdir()
    (tmp_path / "diary.txt").write_text("mine")
    log = tmp_path / "runs/tickets-fea-round-0.error.txt"
    log.symlink_to(tmp_path / "diary.txt")
    bench(repcl, data_file, encoder_folder, tmp_path / "runs", "--device", "cuda:99")
    assert log.is_symlink()
    assert (tmp_path / "diary.txt").read_text() == "mine"


def test_what_a_failure_left_is_deleted_when_the_run_succeeds(repcl, data_file, encoder_folder, tmp_path):
    bench(repcl, data_file, encoder_folder, tmp_path / "runs", "--device", "cuda:99")
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs")
    assert output.code == 0, output.err
    assert list(tmp_path.rglob("*.error.txt")) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--method", "repcll"), "No method 'repcll'. Did you mean 'repcl'?"),
        (("--benchmark", "hwu46"), "No benchmark 'hwu46'. Did you mean 'hwu64'?"),
        (("--benchmark", "nowhere/tickets.csv"), "nowhere/tickets.csv"),
        (("--set", "batchsize=3"), "No setting 'batchsize'. Did you mean 'batch_size'?"),
        (("--set", "batch_size=0"), "batch_size = 0"),
        (("--preset", "cpuu"), "No preset 'cpuu'. Did you mean 'cpu'?"),
        (("--tasks", "9"), "9"),
        (("--protocol", "papr"), "Did you mean 'paper'?"),
        (("--ray", "head"), "--ray takes local, auto, HOST:PORT or ray://HOST:PORT, not 'head'"),
        (("--ray", "127.0.0.1:1"), "No Ray cluster answers at 127.0.0.1:1"),
    ],
)
def test_bad_words_get_one_sentence_exit_code_2_and_nothing_is_written(
    repcl, data_file, encoder_folder, tmp_path, words, sentence
):
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs", *words)
    assert output.code == 2
    assert sentence in output.err
    assert "Traceback" not in output.err + output.out
    assert not (tmp_path / "runs").exists()


def test_two_files_of_one_name_are_refused(repcl, data_file, encoder_folder, tmp_path):
    other = tmp_path / "other/tickets.csv"
    other.parent.mkdir()
    other.write_text(data_file.read_text())
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs", "--benchmark", other)
    assert output.code == 2
    assert f"{data_file} and {other} have one name" in output.err
    assert "rename one file" in output.err
    assert not (tmp_path / "runs").exists()


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "empty"),
        ("text,label\n", "no"),
        ("message,label\na,b\n", "message"),
        ("text,label\na,x\n,y\n", "row"),
        ("text,label\na,x\nb,\n", "row"),
        ("text,label\na,x\nb,x\nc,x\n", "class"),
        ("text,label\na,x\nb,y\n", "test"),
    ],
    ids=[
        "empty file",
        "no rows",
        "missing column",
        "empty text",
        "missing label",
        "one class",
        "nothing to test",
    ],
)
def test_a_bad_data_file_gets_one_sentence_and_nothing_is_written(
    repcl, encoder_folder, tmp_path, content, sentence
):
    path = write(tmp_path / "bad.csv", content)
    output = bench(repcl, path, encoder_folder, tmp_path / "runs")
    assert output.code == 2
    assert sentence in output.err.lower()
    assert not (tmp_path / "runs").exists()


def test_an_encoder_folder_without_weights_is_named(repcl, data_file, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    output = bench(repcl, data_file, empty, tmp_path / "runs")
    assert output.code == 2
    assert "holds no weights" in output.err
    assert not (tmp_path / "runs").exists()


def test_a_class_of_one_example_is_trained_and_reported_as_untested(
    repcl, data_file, encoder_folder, tmp_path
):
    data_file.write_text(data_file.read_text() + "a rare boat,rare\n")
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs")
    assert output.code == 0, output.err
    assert "rare" in output.out


def test_a_text_of_100000_characters_is_shortened_with_one_note(repcl, data_file, encoder_folder, tmp_path):
    data_file.write_text(data_file.read_text() + f"{'rain ' * 20000},weather\n")
    output = bench(repcl, data_file, encoder_folder, tmp_path / "runs")
    assert output.code == 0, output.err
    assert output.out.count("shortened") == 1


def test_list_methods_names_every_method(repcl):
    output = repcl("list", "methods")
    assert output.code == 0
    named = [line.split("│")[1].strip() for line in output.out.splitlines() if line.startswith("│")]
    assert named == list(METHODS)


def test_list_methods_shows_paper_year_and_cost_relative_to_fea(repcl):
    line = next(line for line in repcl("list", "methods").out.splitlines() if line.startswith("│ fea "))
    cells = [cell.strip() for cell in line.split("│")]
    assert cells[2:4] == ["Wang et al.", "2022"]
    assert cells[6] == "1.00"


def settings_listed(repcl, *options: str) -> dict[str, tuple[str, str]]:
    """Value and description of each setting that is listed."""
    output = repcl("list", "settings", *options)
    assert output.code == 0, output.err
    lines = [line.split("│") for line in output.out.splitlines() if line.startswith("│")]
    return {cells[1].strip(): (cells[2].strip(), cells[3].strip()) for cells in lines}


def test_list_settings_shows_every_setting_of_a_method_with_its_value_and_what_it_does(repcl):
    listed = settings_listed(repcl, "--method", "fea")
    assert listed.keys() == METHODS["fea"].Settings.model_fields.keys()
    assert listed["learning_rate"] == ("5e-05", "learning rate of the encoder")
    assert listed["reserved"][0] == "false"
    assert listed["memory_total"][0] == "–"


def test_list_settings_takes_preset_benchmark_and_variant_into_account(repcl):
    assert settings_listed(repcl, "--method", "fea", "--preset", "paper")["learning_rate"][0] == "1e-05"
    of_relations = settings_listed(repcl, "--method", "repcl@no-con", "--benchmark", "fewrel")
    assert of_relations["generation_weight"][0] == "0.2"
    assert of_relations["contrast"][0] == "none"


def test_a_listed_value_is_written_as_set_takes_it(repcl):
    listed = settings_listed(repcl, "--method", "duet")
    name, (value, _) = "frozen", listed["frozen"]
    assert value == '["tower"]'
    assert parse_overrides([f"{name}={value}"], ["duet"], load_preset("cpu")) == {
        "duet": {"frozen": ["tower"]}
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("settings",), "Expected a method, found none: repcl list settings --method repcl."),
        (("settings", "--method", "nope"), "No method 'nope'."),
        (("settings", "--method", "fea", "--benchmark", "nope"), "No benchmark 'nope'."),
        (("settings", "--method", "aca", "--benchmark", "hwu64"), "aca takes relation input, not sentence."),
        (("methods", "--preset", "cpu"), "Expected --preset with settings only, found it with methods"),
    ],
)
def test_what_cannot_be_listed_is_told(repcl, words, told):
    output = repcl("list", *words)
    assert output.code == 2
    assert told in output.err


def test_version_is_printed(repcl):
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", repcl("--version").out)


def test_report_of_an_empty_folder_says_how_to_make_runs(repcl, tmp_path):
    output = repcl("report", tmp_path)
    assert output.code == 2
    assert "No finished run in" in output.err
