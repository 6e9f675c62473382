"""The JSON of a model folder: which classifier a revision holds, file by file, and how it came about."""

import json
from datetime import datetime, timezone
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from repcl.data.examples import InputKind
from repcl.errors import RepclError

FORMAT = 1
BLOB_NAME = r"^[0-9a-f]{64}\.(safetensors|jsonl|json)$"

LabelType = Literal["text", "number"]
Count = Annotated[int, Field(ge=0)]


class DamagedModel(RepclError):
    """A model folder holds something that repcl did not write, or that was changed since."""


class NewerFormat(RepclError):
    """A model folder was written by a newer repcl."""


class Record(BaseModel):
    """A part of the JSON: frozen, and closed to names that it does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def formerly(old: str, new: str) -> AliasChoices:
    """Read a field under its name and under the one that the first folders have."""
    return AliasChoices(new, old)


class ClassChange(Record):
    """What an update did to an old class.

    Attributes:
        name: of the class.
        texts: its held-out texts.
        correct_before: how many of them got their label before the update.
        correct_after: how many got it after the update.
        lost: how many were right before and are wrong now.
    """

    name: str
    texts: int
    correct_before: Annotated[int, Field(validation_alias=formerly("right_before", "correct_before"))]
    correct_after: Annotated[int, Field(validation_alias=formerly("right_after", "correct_after"))]
    lost: int


class Comparison(Record):
    """Held-out texts of old classes before and after an update.

    Attributes:
        compared: how many there are.
        accuracy_before: on them, before the update; None when there are none.
        accuracy_after: on them, after the update.
        regressed: the old classes with fewer right answers than before.
        p_value: McNemar's exact test of before against after.
        reasons: why the update should not be used; empty when all is well.
    """

    compared: int = 0
    accuracy_before: float | None = None
    accuracy_after: float | None = None
    regressed: Annotated[
        tuple[ClassChange, ...], Field(validation_alias=formerly("fallen", "regressed"))
    ] = ()
    p_value: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether the update should not be used."""
        return bool(self.reasons)


class Update(Comparison):
    """One change of a classifier, and what it did to held-out texts.

    Attributes:
        action: what was done.
        when: UTC.
        new_classes: learned in this update for the first time.
        more_of: classes that were known before and got more examples.
        examples: texts learned from.
        held_out: texts of this update that were held out instead.
        accuracy: on all held-out texts after the update, those of new classes too.
    """

    action: Literal["learn", "rename", "merge", "remove", "absorb"]
    when: str
    new_classes: tuple[str, ...] = ()
    more_of: tuple[str, ...] = ()
    examples: int = 0
    held_out: Annotated[int, Field(validation_alias=formerly("held_back", "held_out"))] = 0
    accuracy: float | None = None


class Calibration(Record):
    """How scores become probabilities.

    Attributes:
        temperature: divides the scores before the softmax.
        threshold: the confidence that 95 % of the texts below reach; None without any.
        texts: how many texts they were chosen by.
    """

    temperature: float = 1.0
    threshold: float | None = None
    texts: int = 0


class Blob(Record):
    """A file named by the sha256 of its bytes."""

    file: Annotated[str, StringConstraints(pattern=BLOB_NAME)]
    bytes: Count

    @property
    def digest(self) -> str:
        """The sha256 that the file's bytes have to have."""
        return self.file.partition(".")[0]


class ClassRecord(Record):
    """A class; `origins` stay the same when it is renamed and add up when classes are merged."""

    name: str
    origins: tuple[str, ...]


class ExamplesRecord(Record):
    """A file of examples, one JSON object per line."""

    file: Blob
    count: Count


class EncoderRecord(Record):
    """What rebuilds the encoder without the package or folder it came from; weights are among the tensors."""

    name: str
    config: Blob
    tokenizer: Blob


class Contents(Record):
    """Everything that a classifier needs to predict and to keep learning."""

    parameters: dict[str, Any]
    method: str
    kind: InputKind
    settings: dict[str, Any]
    seed: int
    tasks_learned: Count
    updates_made: Count
    label_type: LabelType
    classes: tuple[ClassRecord, ...]
    declared: tuple[str, ...]
    calibration: Calibration
    encoder: EncoderRecord
    tensors: dict[str, Blob]
    memory: ExamplesRecord
    held_out: Annotated[ExamplesRecord, Field(validation_alias=formerly("held_back", "held_out"))]

    @property
    def names(self) -> list[str]:
        """All classes, also those announced only."""
        return list(dict.fromkeys([*(record.name for record in self.classes), *self.declared]))

    def blobs(self) -> list[Blob]:
        """All files that this refers to."""
        return [
            self.encoder.config,
            self.encoder.tokenizer,
            self.memory.file,
            self.held_out.file,
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


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_json(record: Record) -> bytes:
    """A record as a checked file: format number, hash of the record, the record."""
    body = record.model_dump(mode="json")
    head = {"format": FORMAT, "sha256": _digest(body), "record": body}
    return (json.dumps(head, ensure_ascii=False, indent=1) + "\n").encode()


def parse_json(data: bytes, where: str) -> Any:
    """JSON from a file that may hold anything."""
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
    where = ".".join(map(str, problem["loc"]))
    return f"{where or 'the record'}, {problem['msg'].lower()}"
