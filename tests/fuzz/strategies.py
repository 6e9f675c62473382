"""Files that hypothesis makes: of the right form with odd contents, and good ones with bytes changed."""

import io
import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from repcl.presets.loader import TOP_LEVEL
from tests.fuzz import seeds

NAMES = ["text", "label", "head", "tail", "trigger", "", "id", "\x1b[31m", "größe"]
SIGNS = st.characters(codec=None)
ODD = [
    "",
    " ",
    "nan",
    "[0, 1]",
    "[1]",
    '"',
    ",",
    "\n",
    "\r",
    "\0",
    "\ud800",
    "\x1b[2J",
    "\u202e",
    "9" * 500,
    "[" * 500,
]
TEXTS = st.one_of(st.sampled_from(ODD), st.text(SIGNS, max_size=20))


@st.composite
def changed(draw: st.DrawFn, files: list[bytes]) -> bytes:
    """A file with some bytes replaced, put in, taken out, doubled or cut off."""
    data = bytearray(draw(st.sampled_from(files)))
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 20)))
        kind = draw(st.sampled_from(["replace", "insert", "delete", "double", "cut"]))
        if kind == "replace":
            data[start:end] = draw(st.binary(min_size=end - start, max_size=end - start))
        elif kind == "insert":
            data[start:start] = draw(st.binary(max_size=20))
        elif kind == "delete":
            del data[start:end]
        elif kind == "double":
            data[start:start] = data[start:end] * draw(st.integers(1, 50))
        elif start:
            del data[start:]
    return bytes(data)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _csv_file(rows: list[list[str]]) -> bytes:
    return _bytes("\n".join(",".join(row) for row in rows))


CSV = st.one_of(
    changed(seeds.CSV),
    st.builds(
        lambda names, rows: _csv_file([names, *rows]),
        st.lists(st.sampled_from(NAMES), max_size=5),
        st.lists(st.lists(TEXTS, max_size=5), max_size=4),
    ),
    st.binary(max_size=100),
)

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5)

JSONL = st.one_of(
    changed(seeds.JSONL),
    st.builds(
        lambda objects, ascii_: _bytes("\n".join(json.dumps(one, ensure_ascii=ascii_) for one in objects)),
        st.lists(OBJECTS | VALUES, max_size=4),
        st.booleans(),
    ),
    st.binary(max_size=100),
)

_GOOD_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
_CELLS = {
    pa.string(): _GOOD_TEXTS | st.none(),
    pa.large_string(): _GOOD_TEXTS,
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.binary(): st.binary(max_size=9),
    pa.timestamp("us"): st.integers(-(2**63), 2**63 - 1),
    pa.list_(pa.int64()): st.lists(st.integers(-9, 99), max_size=4) | st.none(),
    pa.list_(pa.int64(), 2): st.lists(st.integers(-9, 99), min_size=2, max_size=2),
    pa.struct({"a": pa.int64()}): st.just({"a": 1}),
}


@st.composite
def _parquet_file(draw: st.DrawFn) -> bytes:
    names = draw(st.lists(st.sampled_from(NAMES[:7]), min_size=1, max_size=4))
    rows = draw(st.integers(0, 5))
    kinds = [draw(st.sampled_from(list(_CELLS))) for _ in names]
    cells = [draw(st.lists(_CELLS[kind], min_size=rows, max_size=rows)) for kind in kinds]
    arrays = [pa.array(column, kind) for column, kind in zip(cells, kinds, strict=True)]
    file = io.BytesIO()
    pq.write_table(
        pa.Table.from_arrays(arrays, names=names),
        file,
        use_dictionary=draw(st.booleans()),
        compression=draw(st.sampled_from(["none", "snappy", "zstd"])),
        data_page_version=draw(st.sampled_from(["1.0", "2.0"])),
    )
    return file.getvalue()


@st.composite
def _changed_footer(draw: st.DrawFn) -> bytes:
    """A file in whose footer some bits are flipped."""
    data = bytearray(draw(st.sampled_from(seeds.PARQUET)))
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for _ in range(draw(st.integers(1, 3))):
        data[draw(st.integers(footer, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


PARQUET = st.one_of(changed(seeds.PARQUET), _changed_footer(), _parquet_file())


@st.composite
def _workbook(draw: st.DrawFn) -> bytes:
    """A workbook that unpacks, with a part in which bytes are changed."""
    part = draw(st.sampled_from(sorted(seeds.WORKBOOK)))
    return seeds.workbook(**{part: draw(changed([seeds.WORKBOOK[part].encode()]))})


XLSX = st.one_of(changed(seeds.XLSX), _workbook())

_KEYS = st.sampled_from(
    [
        *sorted(TOP_LEVEL),
        "methods.repcl",
        "kinds.sentence",
        "kinds.event.all",
        "benchmarks.x.fea",
        "analysis.steps",
    ]
)
_PLAIN = ["1", "-1", "0.5", "inf", "nan", "true", "9" * 400, "1979-05-27T07:32:00Z", "[]", "[1, [2]]"]
_WORDS = ['""', '"cpu"', '"paper"', '"\\u001b"']
_TABLES = ["{}", "{all = 1}", "{all = {batch_size = 1}}", "{repcl = {momentum = []}}"]
_TOML = st.sampled_from([*_PLAIN, *_WORDS, *_TABLES])

PRESETS = st.one_of(
    changed(seeds.PRESETS),
    st.dictionaries(_KEYS, _TOML, max_size=4).map(
        lambda entries: _bytes("\n".join(f"{key} = {value}" for key, value in entries.items()))
    ),
    st.binary(max_size=100),
)

_NUMBERS = [0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, math.nan, math.inf, -math.inf]
_ANY = st.sampled_from([None, True, [], {}, *_NUMBERS, *ODD]) | VALUES


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value of a JSON text."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in _places(one, (*path, key)))]


@st.composite
def edited(draw: st.DrawFn, file: bytes) -> bytes:
    """A JSON text, or one line of several, with some values replaced, taken out or doubled."""
    lines = file.splitlines() if file.count(b"\n{") else [file]
    chosen = draw(st.integers(0, len(lines) - 1))
    whole = {"": json.loads(lines[chosen])}
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(_places(whole)[1:]))
        inside: Any = whole
        for key in place[:-1]:
            inside = inside[key]
        kind = draw(st.sampled_from(["replace", "replace", "replace", "delete", "double"]))
        if kind == "replace":
            inside[place[-1]] = draw(_ANY)
        elif kind == "delete" and len(place) > 1:
            del inside[place[-1]]
        elif isinstance(inside, list):
            inside.append(inside[place[-1]])
        else:
            inside[draw(TEXTS)] = inside[place[-1]]
        if not isinstance(whole.get(""), dict | list):
            break
    lines[chosen] = _bytes(json.dumps(whole.get(""), ensure_ascii=draw(st.booleans())))
    return b"\n".join(lines) + b"\n"


def json_files(good: bytes) -> st.SearchStrategy[bytes]:
    """Files that are nearly what is expected."""
    return st.one_of(edited(good), edited(good), changed([good, *seeds.JSON]))


def tensor_files(good: bytes) -> st.SearchStrategy[bytes]:
    """Files of one tensor with another header, or with bytes changed."""
    length = int.from_bytes(good[:8], "little")
    header, rest = good[8 : 8 + length], good[8 + length :]
    with_header = edited(header).map(lambda head: len(head).to_bytes(8, "little") + head + rest)
    return st.one_of(with_header, changed([good]))
