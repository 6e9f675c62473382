"""Whatever a message quotes, it is one short line that does not steer a terminal."""

import inspect
import pickle
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from repcl import errors
from repcl.errors import LONGEST_SENTENCE, BadRows, RepclError, UnknownName, listed, printable, shortened

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, RepclError) and kind not in (UnknownName, BadRows)
]
MADE_OF_PARTS = [UnknownName("method", "a", ["b"]), BadRows("a.csv", ["row 1 is bad.", "row 2 too."], 3)]
ANYTHING = st.text(st.characters(codec=None), max_size=200)


def deep(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_of_nine_megabytes_becomes_one_short_sentence(kind):
    message = str(kind("It begins here, " + "x" * 9_000_000 + " and ends here."))
    assert len(message) <= LONGEST_SENTENCE
    assert message.startswith("It begins here, ")
    assert message.endswith(" and ends here.")


@given(ANYTHING)
@example("two\nlines\r\n")
@example("\x1b[2J\x1b]0;title\x07")
@example("\x9b31m\x85\u2028\u2029")
@example("half \ud83d of a pair, and a byte \udcff")
@example("\u202egnp.exe")
def test_a_message_is_one_line_in_any_encoding_that_has_its_letters(text):
    message = str(RepclError(text))
    assert len(message.splitlines()) <= 1
    assert "\x1b" not in message
    assert "\u202e" not in message
    message.encode()


@pytest.mark.parametrize("text", ["Größe", "日本 👟", "a\\nb", "non\u00a0breaking", "👩\u200d👧", ""])
def test_letters_of_all_scripts_are_shown_as_they_are(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"), [("a\nb", "a\\nb"), ("\x1b[31m", "\\x1b[31m"), ("\t", "\\t"), ("\ud800", "\\ud800")]
)
def test_characters_that_steer_are_shown_with_a_backslash(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    "value",
    [
        "x" * 20_000_000,
        b"x" * 20_000_000,
        10**5000,
        -(10**100_000),
        deep(100_000),
        list(range(5_000_000)),
        {"x" * 9_000_000: "y" * 9_000_000},
        {str(number): [["x" * 1000] * 1000] for number in range(1000)},
        Unshowable(),
        "\ud800" * 500,
        float("nan"),
        None,
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_is_shown_in_one_short_line_at_once(value):
    start = time.monotonic()
    shown = shortened(value)
    assert time.monotonic() - start < 1
    assert 0 < len(shown) <= 81
    shown.encode()
    assert "\n" not in shown


@given(st.recursive(st.none() | st.text() | st.integers() | st.floats(), st.lists))
@settings(max_examples=50)
def test_short_values_are_shown_as_python_writes_them(value):
    if len(repr(value)) <= 20:
        assert shortened(value) == repr(value)


def test_many_names_are_listed_up_to_a_number():
    assert listed([f"c{number}" for number in range(10_000)], 3) == "c0, c1, c2 and 9,997 more"


def test_long_names_are_cut_in_a_list():
    assert len(listed(["x" * 9_000_000] * 5)) < 500


@pytest.mark.parametrize("length", [1, 1000, 9_000_000])
def test_an_unknown_name_of_any_length_among_ten_thousand_is_said_quickly(length):
    start = time.monotonic()
    message = str(UnknownName("class", "x" * length, [f"class {number}" for number in range(10_000)]))
    assert time.monotonic() - start < 5
    assert len(message) < 1000


@pytest.mark.parametrize("error", [*MADE_OF_PARTS, *(kind("Why.") for kind in KINDS)])
def test_errors_reach_another_process_as_they_were(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), str(error))
