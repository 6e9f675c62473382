"""The shape of a revision's JSON: what a classifier holds, file by file, and how it came about."""

import json
from hashlib import sha256
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from repcl.classifier.guard import Record, Update
from repcl.classifier.inputs import LabelType
from repcl.classifier.unknown import Calibration
from repcl.data import InputKind
from repcl.errors import RepclError

FORMAT = 1
BLOB_NAME = r"^[0-9a-f]{64}\.(safetensors|jsonl|json)$"


class DamagedModel(RepclError):
    """A model folder holds something that this version did not write, or not any more as it was written."""


class NewerFormat(RepclError):
    """A model folder was written by a newer repcl."""


class Blob(Record):
    """A file named by the sha256 of its bytes."""

    file: Annotated[str, StringConstraints(pattern=BLOB_NAME)]
    bytes: Annotated[int, Field(ge=0)]

    @property
    def digest(self) -> str:
        """The sha256 that the file's bytes have to have."""
        return self.file.partition(".")[0]


class ClassRecord(Record):
    """A class; `origins` stay the same when it is renamed and add up when classes are merged."""

    name: str
    origins: tuple[str, ...]


class ExamplesRecord(Record):
    """A file of examples, one JSON object a line."""

    file: Blob
    count: Annotated[int, Field(ge=0)]


class EncoderRecord(Record):
    """What rebuilds the encoder without the package or folder it came from; weights are among the tensors."""

    name: str
    config: Blob
    tokenizer: Blob


class Contents(Record):
    """Everything that a classifier has to know to predict and to go on learning."""

    parameters: dict[str, Any]
    method: str
    kind: InputKind
    settings: dict[str, Any]
    seed: int
    tasks_learned: Annotated[int, Field(ge=0)]
    updates_made: Annotated[int, Field(ge=0)]
    label_type: LabelType
    classes: tuple[ClassRecord, ...]
    declared: tuple[str, ...]
    calibration: Calibration
    encoder: EncoderRecord
    tensors: dict[str, Blob]
    memory: ExamplesRecord
    held_back: ExamplesRecord

    def blobs(self) -> list[Blob]:
        """All files that this refers to."""
        return [
            self.encoder.config,
            self.encoder.tokenizer,
            self.memory.file,
            self.held_back.file,
            *self.tensors.values(),
        ]


class Revision(Record):
    """One state of a model folder.

    Attributes:
        number: counts up, and is never given twice.
        parent: the revision it was made from.
        when: it was written, UTC.
        version: of repcl.
        updates: what was done since the parent.
        contents: the classifier.
    """

    number: Annotated[int, Field(ge=1)]
    parent: int | None
    when: str
    version: str
    updates: tuple[Update, ...]
    contents: Contents

    @property
    def is_refused(self) -> bool:
        """Whether the guard advised against one of its updates."""
        return any(update.is_refused for update in self.updates)


class Current(Record):
    """Which revision is in use, and the highest number given so far."""

    revision: Annotated[int, Field(ge=1)]
    last: Annotated[int, Field(ge=1)]


def to_json(record: Record) -> bytes:
    """A record as a checked file: format number, hash of the record, the record."""
    body = record.model_dump(mode="json")
    head = {"format": FORMAT, "sha256": _digest(body), "record": body}
    return (json.dumps(head, ensure_ascii=False, indent=1) + "\n").encode()


def parse_json(data: bytes, where: str) -> Any:
    """JSON from a file that may be anything."""
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedModel(f"Expected JSON in {where}, found something else.") from error


def read_record(data: bytes, kind: type[Record], where: str) -> Any:
    """A record of a kind from the bytes of a checked file."""
    head = parse_json(data, where)
    if not isinstance(head, dict) or not isinstance(head.get("format"), int):
        raise DamagedModel(f"Expected a record with a format number in {where}, found none.")
    if head["format"] > FORMAT:
        raise NewerFormat(
            f"{where} has format {head['format']}, this version of repcl reads up to {FORMAT}: update repcl "
            "(pip install --upgrade repcl)."
        )
    body = head.get("record")
    try:
        if not isinstance(body, dict) or head.get("sha256") != _digest(body):
            raise DamagedModel(f"{where} is damaged: its contents do not have the sha256 that it names.")
        return kind.model_validate(body)
    except (ValidationError, RecursionError) as error:
        raise DamagedModel(f"{where} is not what repcl writes: {_first(error)}.") from error


def one_line(error: Exception) -> str:
    """What an error says, short enough to stand inside a sentence."""
    return " ".join(str(error).split())[:200]


def _digest(body: Any) -> str:
    plain = json.dumps(body, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return sha256(plain.encode()).hexdigest()


def _first(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return "nested too deeply"
    problem = error.errors()[0]
    place = ".".join(map(str, problem["loc"]))
    return f"{place or 'the record'}, {problem['msg'].lower()}"
