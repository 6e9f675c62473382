"""What a search found: in a sentence, and as a preset file with all settings of the method."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from repcl.errors import ResultMismatch
from repcl.experiments.tuning.search import Search, best_trial
from repcl.experiments.tuning.trials import Trial
from repcl.files import open_plain, write_whole
from repcl.methods.variants import split_variant, variant_settings
from repcl.presets import PRESETS

FOUND_BY = "# Found by: "
"""How a preset begins that a search has written."""


def verdict(search: Search, trials: Sequence[Trial]) -> str:
    """The best trial against the preset, and what of the difference may be chance."""
    best, first = best_trial(trials), trials[0]
    error = search.standard_error(best)
    texts = f"over {sum(search.texts)} held-out texts, where one standard error is {100 * error:.1f} points"
    if best.number == first.number:
        return f"No trial was better than the preset's own settings: {percent(first.score)} {texts}."
    difference = (best.score or 0.0) - (first.score or 0.0)
    doubt = "may well be chance" if difference < 2 * error else "is still partly luck"
    return (
        f"Best: trial {best.number} with {percent(best.score)}, {100 * difference:.1f} points above the "
        f"preset's own settings ({percent(first.score)}), {texts}. The difference {doubt}: the best of "
        f"{len(trials)} trials is also the luckiest. More rounds (--rounds) make the score more reliable."
    )


def preset_file(search: Search) -> Path:
    """Where the preset of a search is written; a file there that no search has written is refused."""
    path = search.folder.with_name(search.folder.name + ".toml")
    if os.path.lexists(path) and not _is_ours(path):
        raise ResultMismatch(f"{path} was not written by a search: move it elsewhere, or use another --out.")
    return path


def _is_ours(path: Path) -> bool:
    try:
        with open_plain(path) as file:
            return file.read(len(FOUND_BY)).decode(errors="replace") == FOUND_BY
    except OSError:
        return False


def write_preset(search: Search, trials: Sequence[Trial], command: str) -> Path:
    """Write the best settings to `OUT/METHOD-BENCHMARK.toml`, a file that `--preset` takes."""
    path = preset_file(search)
    write_whole(path, preset_text(search, trials, command))
    return path


def preset_text(search: Search, trials: Sequence[Trial], command: str) -> str:
    """The file: other methods are as in the preset that the search began with."""
    name, variant = split_variant(search.method)
    plan, spec = search.plans[0], search.trial_specs(0, {})[0]
    # without the variant's own changes, which `--method NAME@VARIANT` makes again
    plain = replace(spec, method=name, options=replace(spec.options, settings={}, out=None)).resolve().plan
    without = {key: plain.settings[key] for key in variant_settings(name, variant)}
    settings = {**plan.settings, **without, **best_trial(trials).settings}
    lines = [f"{key} = {toml_value(value)}" for key, value in settings.items() if value is not None]
    base = plan.preset if plan.preset in PRESETS else str(Path(plan.preset).resolve())
    encoder = str(Path(plan.encoder).resolve()) if Path(plan.encoder).is_dir() else plan.encoder
    return "\n".join(
        [
            *(f"# {line}" for line in _history(search, trials, command)),
            "",
            f"extends = {toml_value(base)}",
            f"encoder = {toml_value(encoder)}",
            "",
            f"[methods.{name}]",
            *lines,
            "",
        ]
    )


def toml_value(value: Any) -> str:
    """A text, number, truth value or list in TOML, which writes them as JSON does."""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _history(search: Search, trials: Sequence[Trial], command: str) -> list[str]:
    best, first = best_trial(trials), trials[0]
    rounds = ", ".join(map(str, search.rounds))
    return [
        f"{FOUND_BY.removeprefix('# ')}{command}",
        f"{len(trials)} trials on the first three tasks of {search.benchmark}, round {rounds}; searched: "
        f"{', '.join(search.space)}.",
        f"Accuracy after the third task on {sum(search.texts)} held-out training texts: "
        f"{percent(best.score)} (trial {best.number}), with the preset's own settings "
        f"{percent(first.score)}; one standard error is {100 * search.standard_error(best):.1f} points.",
        "No test text and no later task was seen.",
    ]


def percent(score: float | None) -> str:
    """A score as it is printed."""
    return "failed" if score is None else f"{100 * score:.1f}"
