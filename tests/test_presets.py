import pytest

from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.benchmarks import BENCHMARKS
from repcl.errors import InvalidSetting, UnknownName
from repcl.methods import METHODS, make_settings
from repcl.presets import PRESETS, load_preset, parse_overrides


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
    assert parse_overrides(["memory_per_class=5"], ["repcl", "sequential"]) == {
        "repcl": {"memory_per_class": 5},
        "sequential": {},
    }


def test_an_option_with_a_methods_name_goes_to_that_method_only():
    assert parse_overrides(["fea.batch_size=8"], ["repcl", "fea"]) == {"repcl": {}, "fea": {"batch_size": 8}}


def test_an_unknown_option_suggests_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'batch_size'"):
        parse_overrides(["batchsize=8"], ["repcl"])


def test_an_option_without_a_value_says_what_was_expected():
    with pytest.raises(InvalidSetting, match="Expected --set KEY=VALUE, found 'batch_size'"):
        parse_overrides(["batch_size"], ["repcl"])


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("3", 3), ("1e-4", 1e-4), ("supcon", "supcon"), ("none", "none")]
)
def test_values_of_options_are_read_by_their_look(text, value):
    assert parse_overrides([f"contrast={text}"], ["repcl"])["repcl"]["contrast"] == value


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
