"""Files to begin from: good ones, and all that once led to a traceback, a hang or lost memory."""

import io
import zipfile

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

_SCHEMA = "http://schemas.openxmlformats.org"
_MAIN = f"{_SCHEMA}/spreadsheetml/2006/main"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_LINK = f"{_SCHEMA}/officeDocument/2006/relationships"
WORKBOOK = {
    "[Content_Types].xml": f'''<Types xmlns="{_SCHEMA}/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>
<Override PartName="/xl/sharedStrings.xml" ContentType="{_TYPES}.sharedStrings+xml"/>
<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPES}.worksheet+xml"/></Types>''',
    "_rels/.rels": f'''<Relationships xmlns="{_SCHEMA}/package/2006/relationships">
<Relationship Id="rId1" Type="{_LINK}/officeDocument" Target="xl/workbook.xml"/></Relationships>''',
    "xl/_rels/workbook.xml.rels": f'''<Relationships xmlns="{_SCHEMA}/package/2006/relationships">
<Relationship Id="rId1" Type="{_LINK}/worksheet" Target="worksheets/sheet1.xml"/>
<Relationship Id="rId2" Type="{_LINK}/sharedStrings" Target="sharedStrings.xml"/></Relationships>''',
    "xl/workbook.xml": f'''<workbook xmlns="{_MAIN}" xmlns:r="{_LINK}">
<sheets><sheet name="a" sheetId="1" r:id="rId1"/></sheets></workbook>''',
    "xl/sharedStrings.xml": f'''<sst xmlns="{_MAIN}"><si><t>text</t></si><si><t>label</t></si></sst>''',
    "xl/worksheets/sheet1.xml": f'''<worksheet xmlns="{_MAIN}"><sheetData>
<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><t>Hello</t></is></c><c r="B2"><v>7</v></c></row>
<row r="3"><c r="A3" t="str"><v>Bye</v></c><c r="B3" t="b"><v>1</v></c></row></sheetData></worksheet>''',
}


def workbook(**changed: bytes) -> bytes:
    """A workbook, with other bytes in the parts of these names."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in WORKBOOK.items():
            archive.writestr(name, changed.get(name, text.encode()))
    return file.getvalue()


XLSX = [workbook()]


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
