import os
import time
from contextlib import suppress

import pytest

from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.benchmarks import BENCHMARKS
from repcl.errors import LONGEST_SENTENCE, InvalidSetting, RepclError, UnknownName
from repcl.experiments.runs.spec import settle_settings
from repcl.methods import METHODS, make_settings
from repcl.presets import PRESETS, load_preset, parse_overrides
from repcl.presets.loader import TOP_LEVEL

CPU = load_preset("cpu")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_fits_every_method_on_every_benchmark(preset, method):
    for name, benchmark in BENCHMARKS.items():
        settings = load_preset(preset).settings_for(method, name, benchmark.kind)
        make_settings(METHODS[method].Settings, settings)


@pytest.mark.parametrize(
    ("benchmark", "kind", "expected"),
    [
        ("fewrel", "relation", (0.05, 0.2, 512, 0.05, 0.99, 0.5, 2, 0.1, 0.2)),
        ("tacred", "relation", (0.05, 0.05, 1024, 0.1, 0.99, 0.2, 2, 0.1, 0.2)),
        ("maven", "event", (0.05, 0.05, 512, 0.05, 0.99, 0.1, 2, 0.1, 0.2)),
        ("hwu64", "sentence", (0.05, 0.1, 512, 0.05, 0.99, 0.4, 2, 0.1, 0.2)),
    ],
)
def test_preset_paper_holds_the_papers_table_of_hyperparameters(benchmark, kind, expected):
    settings = make_settings(
        METHODS["repcl"].Settings, load_preset("paper").settings_for("repcl", benchmark, kind)
    ).model_dump()
    names = (
        "contrast_weight",
        "generation_weight",
        "queue_size",
        "temperature",
        "momentum",
        "mask_probability",
        "adversarial_steps",
        "adversarial_step_size",
        "adversarial_radius",
    )
    assert tuple(settings[name] for name in names) == expected


def test_preset_paper_trains_tacred_with_batches_of_16():
    assert load_preset("paper").settings_for("fea", "tacred", "relation")["batch_size"] == 16


def used(preset, method, benchmark, kind="sentence"):
    """All settings of a method under a preset."""
    return make_settings(METHODS[method].Settings, load_preset(preset).settings_for(method, benchmark, kind))


@pytest.mark.parametrize(
    ("benchmark", "kind"), [("fewrel", "relation"), ("tacred", "relation"), ("hwu64", "sentence")]
)
def test_preset_paper_trains_idbr_as_its_authors_do(benchmark, kind):
    settings = used("paper", "idbr", benchmark, kind)
    assert (settings.learning_rate, settings.head_learning_rate, settings.task_learning_rate) == (
        3e-5,
        3e-5,
        5e-4,
    )
    assert (settings.batch_size, settings.adam_epsilon, settings.warmup_epochs) == (8, 1e-6, 2.5)


@pytest.mark.parametrize(
    ("preset", "benchmark"), [("paper", "hwu64"), ("cpu", "hwu64"), ("cpu", "demo"), ("cpu", "fewrel")]
)
def test_idbr_warms_up_for_a_quarter_of_its_epochs(preset, benchmark):
    settings = used(preset, "idbr", benchmark, BENCHMARKS[benchmark].kind)
    assert settings.warmup_epochs == settings.initial_epochs / 4


@pytest.mark.parametrize(
    ("preset", "benchmark", "batch"), [("paper", "hwu64", 16), ("cpu", "hwu64", 16), ("cpu", "demo", 8)]
)
def test_crl_has_its_authors_batches_but_on_the_demo(preset, benchmark, batch):
    assert used(preset, "crl", benchmark).batch_size == batch


@pytest.mark.parametrize(("kind", "rate"), [("sentence", 5e-5), ("relation", 1e-4), ("event", 5e-5)])
def test_the_first_session_learns_relations_at_twice_the_rate(kind, rate):
    assert load_preset("cpu").settings_for("first_session", "own", kind)["learning_rate"] == rate


def test_preset_smoke_caps_the_data():
    preset = load_preset("smoke")
    assert (preset.max_train_per_class, preset.max_test_per_class) == (16, 8)


def test_a_preset_file_may_extend_a_shipped_one(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "cpu"\n[methods.repcl]\nmomentum = 0.9\n')
    settings = load_preset(str(path)).settings_for("repcl", "hwu64", "sentence")
    assert (settings["momentum"], settings["learning_rate"]) == (0.9, 5e-5)


def test_an_unknown_setting_in_a_preset_file_suggests_the_nearest(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[methods.repcl]\nmomentun = 0.9\n")
    with pytest.raises(UnknownName, match="Did you mean 'momentum'"):
        load_preset(str(path))


def test_a_broken_preset_file_is_named(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[methods\n")
    with pytest.raises(InvalidSetting, match="is not valid TOML"):
        load_preset(str(path))


def test_an_unknown_preset_suggests_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'smoke'"):
        load_preset("smok")


def test_an_option_goes_to_every_method_that_has_it():
    assert parse_overrides(["memory_per_class=5"], ["repcl", "sequential"], CPU) == {
        "repcl": {"memory_per_class": 5},
        "sequential": {},
    }


def test_an_option_with_a_methods_name_goes_to_that_method_only():
    assert parse_overrides(["fea.batch_size=8"], ["repcl", "fea"], CPU) == {
        "repcl": {},
        "fea": {"batch_size": 8},
    }


def test_an_unknown_option_suggests_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'batch_size'"):
        parse_overrides(["batchsize=8"], ["repcl"], CPU)


def test_an_option_without_a_value_says_what_was_expected():
    with pytest.raises(InvalidSetting, match="Expected --set KEY=VALUE, found 'batch_size'"):
        parse_overrides(["batch_size"], ["repcl"], CPU)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("3", 3), ("1e-4", 1e-4), ("supcon", "supcon"), ("none", "none")]
)
def test_values_of_options_are_read_by_their_look(text, value):
    assert parse_overrides([f"contrast={text}"], ["repcl"], CPU)["repcl"]["contrast"] == value


def test_layers_of_a_critic_in_a_preset_file_equal_those_of_a_stored_analysis(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[analysis]\nhidden = [32]\n")
    assert load_preset(str(path)).estimator == EstimatorSettings(hidden=(32,))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            "critics = 0",
            r"Setting critics = 0 of the analysis cannot be used: .* greater than or equal to 1\.",
        ),
        ('steps = "many"', "Setting steps = 'many' of the analysis cannot be used: .* valid integer"),
        ("hidden = []", r"Setting hidden = \[\] of the analysis"),
        ("hidden = [32, 0]", r"Setting hidden = \[32, 0\] of the analysis"),
        ("batch_size = 1", "Setting batch_size = 1 of the analysis"),
        ('partners = "none"', "Setting partners = 'none' of the analysis .*'shifted' or 'drawn'"),
        ("steps = 0", "Setting steps = 0 of the analysis"),
    ],
)
def test_an_estimator_that_cannot_be_used_is_refused_as_the_preset_is_loaded(tmp_path, line, complaint):
    path = tmp_path / "mine.toml"
    path.write_text(f"[analysis]\n{line}\n")
    with pytest.raises(InvalidSetting, match=complaint):
        load_preset(str(path))


def test_an_analysis_that_is_no_table_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("analysis = 5\n")
    with pytest.raises(InvalidSetting, match=r"Expected \[analysis\] to be a table of settings, found 5"):
        load_preset(str(path))


# ---- preset files that are damaged, made with malice, or no files -------------------------------


def refused(path) -> str:
    with pytest.raises(RepclError) as caught:
        load_preset(str(path))
    assert len(str(caught.value)) <= LONGEST_SENTENCE
    return str(caught.value)


@pytest.mark.parametrize("length", [1, 2, 3, 12])
def test_presets_that_extend_each_other_in_a_circle_are_refused(tmp_path, length):
    for number in range(length):
        (tmp_path / f"{number}.toml").write_text(f'extends = "{tmp_path}/{(number + 1) % length}.toml"\n')
    assert "remove one `extends`" in refused(tmp_path / "0.toml")


def test_a_preset_that_extends_itself_by_another_way_is_refused(tmp_path):
    (tmp_path / "a.toml").write_text(f'extends = "{tmp_path}/../{tmp_path.name}/a.toml"\n')
    assert "extend itself" in refused(tmp_path / "a.toml")


def test_a_chain_of_presets_is_followed(tmp_path):
    (tmp_path / "a.toml").write_text(f'extends = "{tmp_path}/b.toml"\n')
    (tmp_path / "b.toml").write_text('extends = "cpu"\nencoder = "mine"\n')
    assert load_preset(str(tmp_path / "a.toml")).encoder == "mine"


VALUES = ["3", "true", '"word"', "[]", "[[1]]", "{}", "1.5", "1979-05-27", "{a = 1}", "{a = {b = 1}}"]
KEYS = [
    *sorted(TOP_LEVEL),
    "methods.repcl",
    "methods.nothing",
    "kinds.sentence",
    "kinds.nothing",
    "kinds.sentence.repcl",
    "kinds.sentence.all",
    "benchmarks.hwu64",
    "benchmarks.hwu64.all",
    "benchmarks.mine.repcl",
    "analysis.steps",
    "methods.repcl.momentum",
    '"\\u001b[31m"',
    '"" ',
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", VALUES)
def test_a_preset_entry_of_any_type_is_used_or_refused(tmp_path, key, value):
    path = tmp_path / "mine.toml"
    path.write_text(f"{key} = {value}\n")
    with suppress(RepclError):
        settings = load_preset(str(path)).settings_for("repcl", "hwu64", "sentence")
        make_settings(METHODS["repcl"].Settings, settings)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("methods = 3", "Expected [methods] to be a table of settings, found 3: correct the preset."),
        ("encoder = 5", "Expected encoder to be a text, found 5"),
        ("extends = 5", "Expected extends to be a text, found 5"),
        ("kinds.sentence = 1", "Expected [kinds.sentence] to be a table"),
        ("max_train_per_class = 0", "Expected max_train_per_class to be a whole number from 1, found 0"),
        ("max_test_per_class = true", "Expected max_test_per_class to be a whole number"),
        ("kinds.sentences.all.batch_size = 1", "No input kind 'sentences'. Did you mean 'sentence'?"),
    ],
)
def test_a_preset_entry_of_the_wrong_type_is_named(tmp_path, line, sentence):
    path = tmp_path / "mine.toml"
    path.write_text(line)
    assert sentence in refused(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b'encoder = "\xe9"',
        b"\0",
        b"encoder = " + b"[" * 50_000,
        b"encoder = " + b"{a=" * 20_000,
        b"encoder = " + b"9" * 5000,
        b"a." * 40_000 + b"a = 1",
        b"[" + b"a." * 40_000 + b"a]",
        b'encoder = "' + b"x" * 99_000 + b'"\nnonsense = 1',
        b"x" * 100_001,
        b'"' + b"x" * 90_000 + b'" = 1',
    ],
    ids=lambda content: repr(content[:20]),
)
def test_a_preset_file_that_cannot_be_read_is_refused_at_once(tmp_path, content):
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    start = time.monotonic()
    refused(path)
    assert time.monotonic() - start < 5


def test_a_preset_of_a_hundred_megabytes_is_not_read(tmp_path):
    path = tmp_path / "mine.toml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    assert "has 100,000,000 bytes where at most 100,000 are read" in refused(path)


def test_a_folder_a_pipe_and_a_long_path_are_no_presets(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path, tmp_path / "pipe.toml", tmp_path / f"{'x' * 300}.toml", tmp_path / "nowhere.toml"):
        refused(path)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 300, "x" * 9_000_000, "a\0b", "\ud800", "\x1b[31m"])
def test_what_names_no_preset_is_refused(name):
    refused(name)


@pytest.mark.parametrize(
    "value",
    [
        "[" * 900,
        "{a=" * 300,
        "9" * 5000,
        "[" * 100_000,
        "x" * 100_000,
        "1\n[other]\na = 1",
        "\ud800",
    ],
    ids=lambda value: value[:10],
)
def test_an_option_of_any_depth_or_length_is_a_word_or_refused(value):
    def chosen():
        found = parse_overrides([f"features={value}"], ["instant"], CPU)["instant"]["features"]
        make_settings(METHODS["instant"].Settings, {"features": found})

    with pytest.raises(RepclError) as caught:
        chosen()
    assert len(str(caught.value)) <= LONGEST_SENTENCE


FEA_DUET = 'extends = "cpu"\n[methods.duet]\ntrained = "fea"\ninfomax_weight = 0.25\n'


def settled(folder, text, method="duet", kind="sentence", **changed):
    """All settings of a method under a preset file."""
    (folder / "mine.toml").write_text(text)
    return settle_settings(method, "own", kind, preset=str(folder / "mine.toml"), settings=changed)


def test_a_preset_may_choose_the_parts_of_a_duet_and_their_settings(tmp_path):
    assert settled(tmp_path, FEA_DUET).infomax_weight == 0.25


def test_a_part_that_a_preset_chooses_has_the_settings_of_its_own_table(tmp_path):
    assert settled(tmp_path, FEA_DUET + "[methods.fea]\nlearning_rate = 0.002\n").learning_rate == 0.002


def test_a_preset_may_choose_the_parts_for_one_input_kind_only(tmp_path):
    text = 'extends = "cpu"\n[kinds.event.duet]\ntrained = "fea"\n'
    assert settled(tmp_path, text, kind="event").trained == "fea"
    assert settled(tmp_path, text, kind="sentence").trained == "repcl"


def test_settings_of_a_part_may_stand_in_a_preset_that_extends_the_one_that_chose_it(tmp_path):
    (tmp_path / "base.toml").write_text(FEA_DUET)
    text = f'extends = "{tmp_path / "base.toml"}"\n[methods.duet]\ninfomax_weight = 0.5\n'
    assert settled(tmp_path, text).infomax_weight == 0.5


def test_a_part_that_is_typed_wins_over_that_of_the_preset(tmp_path):
    found = settled(tmp_path, FEA_DUET, trained="kcn")
    assert found.trained == "kcn"
    assert not hasattr(found, "infomax_weight")


def test_a_variant_wins_over_the_parts_of_the_preset(tmp_path):
    assert settled(tmp_path, FEA_DUET + 'frozen = ["tower"]\n', "duet@statistics").frozen == ("vote",)


def test_a_setting_of_no_part_that_a_preset_chooses_is_refused(tmp_path):
    with pytest.raises(UnknownName, match="No setting 'crazy_weight'"):
        settled(tmp_path, FEA_DUET + "crazy_weight = 1\n")


def test_settings_of_a_part_that_the_preset_chooses_may_be_typed(tmp_path):
    (tmp_path / "mine.toml").write_text(FEA_DUET)
    preset = load_preset(str(tmp_path / "mine.toml"))
    assert parse_overrides(["infomax_weight=0.5"], ["duet"], preset) == {"duet": {"infomax_weight": 0.5}}
