"""The space of a search: every method's ranges fit its presets, and a user's file is checked word by word."""

import pytest

from repcl.benchmarks import BENCHMARKS
from repcl.data import InputKind
from repcl.errors import InvalidData, InvalidSetting, RepclError, UnknownName
from repcl.experiments.runs.spec import settle_settings
from repcl.experiments.tuning.space import fit_space, load_space
from repcl.methods import METHODS, make_settings
from repcl.methods.search_ranges import Choices, Range
from repcl.methods.variants import split_variant, variant_settings
from repcl.presets import PRESETS, load_preset


def settings_of(method: str, preset: str = "cpu", benchmark: str = "hwu64") -> dict:
    values = load_preset(preset).settings_for(method, benchmark, BENCHMARKS[benchmark].kind)
    return make_settings(METHODS[method].Settings, values).model_dump()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", [name for name in METHODS if name != "ncm"])
def test_the_ranges_of_a_method_hold_the_settings_of_every_preset(method, preset):
    for benchmark in BENCHMARKS:
        settings = settings_of(method, preset, benchmark)
        kind = BENCHMARKS[benchmark].kind
        space = fit_space(load_space(method), method, settings, kind=kind, fixed=())
        for key, dimension in space.items():
            if isinstance(dimension, Range):
                assert dimension.low <= settings[key] <= dimension.high
            else:
                assert settings[key] in dimension.values


def test_a_method_without_settings_has_nothing_to_search():
    with pytest.raises(InvalidSetting, match="Nothing to search for ncm"):
        fit_space(load_space("ncm"), "ncm", settings_of("ncm"), kind="sentence", fixed=())


def test_repcl_is_searched_in_the_weights_of_its_losses_too():
    assert {"learning_rate", "contrast_weight", "generation_weight", "temperature"} <= load_space(
        "repcl"
    ).keys()


def test_a_range_is_widened_to_hold_the_presets_own_value():
    space = fit_space(
        {"learning_rate": Range(1e-4, 2e-4)}, "fea", settings_of("fea"), kind="sentence", fixed=()
    )
    assert space == {"learning_rate": Range(5e-5, 2e-4)}


def test_choices_gain_the_presets_own_value():
    space = fit_space({"batch_size": Choices((8, 16))}, "fea", settings_of("fea"), kind="sentence", fixed=())
    assert space == {"batch_size": Choices((8, 16, 32))}


def test_a_fixed_setting_is_not_searched():
    space = fit_space(load_space("fea"), "fea", settings_of("fea"), kind="sentence", fixed={"learning_rate"})
    assert set(space) == {"head_learning_rate", "head_dropout"}


@pytest.mark.parametrize(
    ("switched_off", "idle"),
    [
        ({"contrast": "none"}, {"contrast_weight", "temperature"}),
        ({"generation": "none"}, {"generation_weight", "mask_probability"}),
        ({"adversarial": False}, {"adversarial_step_size"}),
    ],
)
def test_settings_of_a_term_that_is_switched_off_are_not_searched(switched_off, idle):
    settings, space = settings_of("repcl"), load_space("repcl")
    searched = fit_space(space, "repcl", settings, kind="sentence", fixed=())
    assert (
        searched.keys() - fit_space(space, "repcl", settings | switched_off, kind="sentence", fixed=()).keys()
        == idle
    )


@pytest.mark.parametrize(
    ("drawn", "tried"), [(3.14159e-05, 3.14e-05), (0.0001999999, 2e-4), (0.123456, 0.123), (1e-5, 1e-5)]
)
def test_drawn_numbers_have_three_digits_and_stay_in_the_range(drawn, tried):
    assert Range(1e-5, 0.2).rounded(drawn) == tried


def test_a_number_is_not_rounded_out_of_its_range():
    assert Range(0.12345, 0.5).rounded(0.1234567) == 0.12345


def test_a_file_replaces_the_ranges_of_the_method(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(
        "[all]\nbatch_size = [8, 32]\nqueue_size = [64]\n"
        "[methods.fea]\nreplay_epochs = { low = 1, high = 9 }\n"
        "learning_rate = { low = 1e-5, high = 1e-4, log = true }\n"
    )
    assert load_space("fea", path) == {
        "batch_size": Choices((8, 32)),
        "replay_epochs": Range(1, 9, is_whole=True),
        "learning_rate": Range(1e-5, 1e-4, is_log=True),
    }


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        ("[all]\nlearning_rat = [1e-5]", UnknownName, "Did you mean 'learning_rate'"),
        ("[methods.fea]\ntemperatur = [1]", UnknownName, "No setting of fea 'temperatur'"),
        ("[methods.feaa]\nx = [1]", UnknownName, "Did you mean 'fea'"),
        ("[method.fea]\nx = [1]", UnknownName, "Did you mean 'methods'"),
        ("all = 3", InvalidSetting, "must be a table of settings, found 3"),
        (
            "[all]\nlearning_rate = 3",
            InvalidSetting,
            "must be a list of values or { low, high, log, unless }, found 3",
        ),
        ("[all]\nlearning_rate = { low = 1 }", InvalidSetting, "must be a list of values or"),
        ("[all]\nlearning_rate = { low = 1, high = 2, lag = true }", InvalidSetting, "must be a list"),
        ("[all]\nlearning_rate = { low = 'a', high = 2 }", InvalidSetting, "needs numbers"),
        ("[all]\nlearning_rate = { low = 2, high = 1 }", InvalidSetting, "needs low < high"),
        ("[all]\nretain = { low = 0, high = 1, log = true }", InvalidSetting, "low above 0 with log"),
        ("[all]\nretain = { low = 0, high = 1, unless = 3 }", InvalidSetting, "a value as unless, found 3"),
        (
            "[all]\nretain = { low = 0, high = 1, unless = { reserve = true } }",
            UnknownName,
            "Did you mean 'reserved'",
        ),
        ("[all", InvalidSetting, "is not valid TOML"),
    ],
)
def test_a_wrong_file_gets_one_sentence(tmp_path, text, error, sentence):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(error) as raised:
        load_space("fea", path)
    assert sentence in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidData, match=r"There is no file .*space\.toml"):
        load_space("fea", tmp_path / "space.toml")


@pytest.mark.parametrize(
    "content",
    [
        b"all = " + b"[" * 5000,
        b"\xff\xfe",
        b"[methods]\nfea = 3\n",
        b"[all]\nridge = { low = 1, high = " + b"9" * 5000 + b" }\n",
        b"x" * 200_000,
        b"a." * 5000,
    ],
    ids=["brackets", "no text", "no table", "digits", "size", "dots"],
)
def test_a_hostile_file_gets_one_short_sentence(tmp_path, content):
    path = tmp_path / "space.toml"
    path.write_bytes(content)
    with pytest.raises(RepclError) as raised:
        load_space("fea", path)
    assert "space.toml" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_an_end_outside_what_the_setting_allows_is_refused():
    with pytest.raises(InvalidSetting, match=r"head_dropout = 1.5"):
        fit_space({"head_dropout": Range(0.0, 1.5)}, "fea", settings_of("fea"), kind="sentence", fixed=())


def test_a_range_needs_a_number_in_the_preset_to_start_from():
    with pytest.raises(InvalidSetting, match="memory_total is None in the preset"):
        fit_space(
            {"memory_total": Range(10, 20, is_whole=True)},
            "fea",
            settings_of("fea"),
            kind="sentence",
            fixed=(),
        )


def searched(row: str, kind: InputKind = "sentence", **changed: object) -> set[str]:
    """The names of what is searched for a row of a table, with these settings beside it."""
    name, variant = split_variant(row)
    settings = settle_settings(row, "own", kind, settings=changed).model_dump()
    fixed = {*variant_settings(name, variant), *changed}
    return {*fit_space(load_space(name, settings=settings), name, settings, kind=kind, fixed=fixed)}


@pytest.mark.parametrize(
    ("row", "plain", "idle"),
    [
        ("kcn@paired", "kcn", {"prediction_weight", "feature_weight"}),
        ("kdrk@no-transfer", "kdrk", {"gate"}),
        ("kdrk@no-none", "kdrk", {"none_threshold"}),
    ],
)
def test_what_a_variant_leaves_idle_is_not_searched(row, plain, idle):
    assert searched(plain) - searched(row) == idle


@pytest.mark.parametrize("method", ["fea", "joint", "sequential"])
def test_dropout_is_not_searched_on_events_whose_classifier_has_no_hidden_layer(method):
    assert searched(method, "relation") - searched(method, "event") == {"head_dropout"}


def test_dropout_of_a_trained_part_is_not_searched_on_events_either():
    assert "head_dropout" in searched("duet", trained="fea")
    assert "head_dropout" not in searched("duet", "event", trained="fea")


def test_dropout_is_searched_on_events_where_a_method_has_a_hidden_layer_of_its_own():
    settings = settle_settings("emar", "own", "event").model_dump()
    space = fit_space({"head_dropout": Range(0.0, 0.5)}, "emar", settings, kind="event", fixed=())
    assert set(space) == {"head_dropout"}


def test_the_duet_of_the_other_track_is_searched_like_the_duet():
    assert searched("duet@statistics") == searched("duet")


def test_a_duet_is_searched_where_its_trained_part_is():
    assert searched("duet", trained="fea") == searched("fea")


def test_a_file_may_name_settings_of_the_parts_that_a_duet_has(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text("[methods.duet]\nmaps = [2, 4]\n")
    settings = settle_settings("duet@statistics", "own", "sentence").model_dump()
    assert load_space("duet", path, settings)["maps"] == Choices((2, 4))
