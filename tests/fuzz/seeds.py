"""Files to begin from: good ones, and all that once led to a traceback, a hang or lost memory."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

CSV = [
    b"text,label\nHello,greet\nBye,part\n",
    'text,label\n"Größe ""XL""\n👟",size\n'.encode("utf-8-sig"),
    b'text,label,head,tail\nAnn met Bo,met,"[0, 3]","[8, 10]"\n',
    b"text,text,label\na,b,c\n",
    b'text,label\n"never closed\n',
    b"text,label\n\x00,\x1b[2J\n",
    b"text,label\r\rCaf\xe9,place\r",
    b"text,label\nHello," + b"9" * 5000,
    b'text,label,trigger\nHello,x,"' + b"[" * 2000 + b'"\n',
]

JSONL = [
    b'{"text": "Hello", "label": "greet"}\n{"text": "Bye", "label": 3}\n',
    b'{"text": "They fought", "label": "war", "trigger": [5, 11]}\n',
    b'{"text": "Hi \\ud83d", "label": "\\udfff"}\n',
    b'{"text": "a", "text": "b", "label": 1e999}\n',
    b'{"text": "a", "label": ' + b"9" * 5000 + b"}",
    b"[" * 3000,
    b'{"text": ' * 3000,
    b'{"text": "a", "label": NaN, "head": [0, 1], "tail": [-1, 99999999999999999999]}',
]

PRESETS = [
    b'extends = "cpu"\nencoder = "minilm-l6"\nmax_train_per_class = 5\n[methods.repcl]\nmomentum = 0.9\n',
    b"[all]\nbatch_size = 8\n[kinds.sentence.fea]\nlearning_rate = 1e-4\n",
    b"[benchmarks.hwu64.all]\nbatch_size = 4\n[benchmarks.hwu64.fea]\nclip_norm = 1\n",
    b"[analysis]\nhidden = [32]\nsteps = 10\n",
    b"methods = 3\n",
    b"encoder = 5\n",
    b"extends = []\n",
    b"kinds.sentence = 1\nbenchmarks = [[1]]\n",
    b"encoder = " + b"[" * 3000,
    b"a." * 3000 + b"a = 1\n",
    b"encoder = " + b"9" * 5000,
    b'encoder = "\xe9"\n',
]

JSON = [
    b"",
    b"null",
    b"[]",
    b"3",
    b'"text"',
    b"{",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"\x00",
    b"\xff\xfe",
    b'{"format": 1}',
    b'{"format": ' + b"9" * 5000 + b"}",
    b'{"format": -1, "record": {}}',
    b'{"format": NaN}',
    b'{"format": 1, "record": []}',
    b'{"fingerprint": "\\ud800"}',
    b'{"format": true, "fingerprint": 5}',
]


def _parquet(columns: dict[str, pa.Array], **options: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    return file.getvalue()


PARQUET = [
    _parquet({"text": pa.array(["Hello", "Bye"]), "label": pa.array(["a", "b"])}),
    _parquet({"text": pa.array(["Hello"] * 50), "label": pa.array([1] * 50)}, compression="none"),
    _parquet({"text": pa.array(["They fought"]), "label": pa.array([7]), "trigger": pa.array([[5, 11]])}),
    _parquet(
        {"text": pa.array([f"text {n}" for n in range(99)]), "label": pa.array(["x"] * 99)}, row_group_size=10
    ),
    _parquet({"text": pa.array(["a"]), "label": pa.array([2**62], pa.timestamp("ns"))}),
    _parquet({"text": pa.array(["a" * 500] * 9), "label": pa.array(["x"] * 9)}, compression="zstd"),
    _parquet(
        {"text": pa.array(["aaab", "aaac"]), "label": pa.array(["x", "y"])},
        use_dictionary=False,
        column_encoding={"text": "DELTA_BYTE_ARRAY", "label": "PLAIN"},
        data_page_version="2.0",
    ),
]

FOUND: dict[str, list[bytes]] = {
    "result": [b'{"format": 1, "method": "\\ud800"}', b'{"format": 1, "settings": {"\xed\xa0\x80": 0}}'],
    "predictions": [b'{"id": "a", "task": 0, "label": "\\ud800", "predicted": ["x"]}'],
    "analysis": [b'{"format": 2, "fingerprint": "demo-fea-0", "representations": {"probes": {"1": [[]]}}}'],
    "progress": [
        b'{"fingerprint": "x", "predictions": [["fruit"]], "seconds": [{}], "saves_representations": true}',
        b'{"fingerprint": "x", "predictions": [[]], "seconds": [{"a": NaN}]}',
        b'{"fingerprint": "x", "predictions": [["\\udfff", "a", "b"]], "seconds": []}',
    ],
    "representations": [b"\x02\0\0\0\0\0\0\0{}"],
}
"""What once led to a traceback, by the reader that it went through."""
