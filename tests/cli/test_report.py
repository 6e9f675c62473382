"""`repcl report`: what it prints, and how often it reads a file."""

import os
import shutil
from collections import Counter
from pathlib import Path

from tests.experiments.made_up import write_grid


def test_the_table_and_the_page_are_named(repcl, tmp_path):
    write_grid(tmp_path, {"repcl": 0.9, "fea": 0.7}, rounds=2)
    output = repcl("report", tmp_path)
    assert "demo, percent" in output.out
    assert f"Report: {tmp_path / 'report.html'}" in output.out


def test_a_folder_without_results_is_an_error_with_the_command_that_makes_some(repcl, tmp_path):
    output = repcl("report", tmp_path, "--against", "fea")
    assert output.code == 2
    assert "repcl bench --out" in output.err


def test_each_result_and_each_file_of_predictions_is_read_once(repcl, tmp_path, monkeypatch):
    write_grid(tmp_path, {"repcl": 0.9, "fea": 0.7}, rounds=2)
    opened: Counter[Path] = Counter()

    def count(file, *options, **named):
        opened[Path(file)] += 1
        return really_open(file, *options, **named)

    really_open = os.open
    monkeypatch.setattr(os, "open", count)
    assert repcl("report", tmp_path).code == 0
    read = [times for path, times in opened.items() if path.name in ("result.json", "predictions.jsonl.gz")]
    assert read == [1] * 8


def test_other_methods_are_tested_against_the_chosen_one(repcl, tmp_path):
    write_grid(tmp_path, {"repcl": 0.9, "fea": 0.7}, rounds=2)
    assert repcl("report", tmp_path, "--against", "fea").code == 0
    page = tmp_path.joinpath("report.html").read_text(encoding="utf-8")
    assert "final accuracy of fea against every other method" in page


def test_a_copied_run_that_does_not_count_is_named(repcl, tmp_path):
    write_grid(tmp_path, {"fea": 0.7}, rounds=1)
    shutil.copytree(tmp_path / "demo/fea/round-0", tmp_path / "demo/fea/round-0-old")
    output = repcl("report", tmp_path)
    assert "round-0-old does not count" in " ".join(output.out.split())
