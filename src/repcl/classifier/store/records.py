"""The JSON of a model folder: which classifier a revision holds, file by file, and how it came about."""

import json
import math
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from repcl.data.examples import InputKind
from repcl.errors import RepclError

FORMAT = 2
ASKED_FOR = ("rename", "merge", "remove", "forget")
"""Actions that do what a user named: the guard advises, and nothing waits for a decision."""
BLOB_NAME = r"^[0-9a-f]{64}\.(safetensors|jsonl|json|onnx)$"
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")

# A record from a stranger may claim anything; what it may claim is bounded before a file is opened.
MEGABYTE = 1 << 20
LARGEST_LINE = 64 * MEGABYTE
LARGEST_JSON = 64 * MEGABYTE
LARGEST_TABLE = 256 * MEGABYTE  # hashes of eleven million texts
LARGEST_FILE = 4 << 30
LARGEST_MODEL = 16 << 30
MOST_REPEATED = 256 * MEGABYTE  # pieces of equal labels, zeros and ones of an encoder
LARGEST_NUMBER = 999_999
LARGEST_GAP = 10_000
"""How far the highest number given may lie above those that are there; the others were deleted."""

LabelType = Literal["text", "number"]
Count = Annotated[int, Field(ge=0, le=10**12)]
Number = Annotated[int, Field(ge=1, le=LARGEST_NUMBER)]
Seed = Annotated[int, Field(gt=-(10**100), lt=10**100)]
Share = Annotated[float, Field(ge=0, le=1)]
Short = Annotated[str, StringConstraints(max_length=200)]
Key = Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Precision = Literal["fp32", "int8"]
ENCODER = "encoder.backbone."
"""How the names of the encoder's tensors begin."""


class DamagedModel(RepclError):
    """A model folder holds something that repcl did not write, or that was changed since."""


class NewerFormat(RepclError):
    """A model folder was written by a newer repcl."""


class Record(BaseModel):
    """A part of the JSON: frozen, and closed to names that it does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def is_whole_number(name: str) -> bool:
    """Whether a name is how a label of 64 bits is written."""
    return WHOLE_NUMBER.fullmatch(name) is not None and abs(int(name)) < 2**63


def _no_empty_name(name: str) -> str:
    if not name.strip() or "\0" in name:
        raise ValueError("a class needs a name")
    return name


ClassName = Annotated[str, AfterValidator(_no_empty_name)]


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
        taken_by: the class that got most of the lost ones; None when none was lost, or in older folders.
        taken: how many of them it got.
    """

    name: str
    texts: Count
    correct_before: Annotated[Count, Field(validation_alias=formerly("right_before", "correct_before"))]
    correct_after: Annotated[Count, Field(validation_alias=formerly("right_after", "correct_after"))]
    lost: Count
    taken_by: str | None = None
    taken: Count = 0


class LostText(Record):
    """A text that an update made wrong: its label, and what it gets now."""

    text: str
    label: str
    answer: str


class Comparison(Record):
    """Held-out texts of old classes before and after an update.

    Attributes:
        compared: how many there are.
        accuracy_before: on them, before the update; None when there are none.
        accuracy_after: on them, after the update.
        recall_before: mean over old classes of the share that was right before the update.
        recall_after: the same after the update.
        regressed: the old classes with fewer right answers than before, those that lost most first.
        p_value: McNemar's exact test of before against after.
        reasons: why the update should not be used; empty when all is well.
        lost_texts: a few texts that were right before and are wrong now. They are for the eyes of whoever
            made the update, and are not written into a model folder.
        doubtful_texts: texts of the update whose labels contradict what was learned from all others, with the
            labels that those speak for, the most doubtful first. They are not written into a model folder
            either.
    """

    compared: Count = 0
    accuracy_before: Share | None = None
    accuracy_after: Share | None = None
    recall_before: Share | None = None
    recall_after: Share | None = None
    regressed: Annotated[
        tuple[ClassChange, ...], Field(validation_alias=formerly("fallen", "regressed"))
    ] = ()
    p_value: Share | None = None
    reasons: tuple[str, ...] = ()
    lost_texts: Annotated[tuple[LostText, ...], Field(exclude=True)] = ()
    doubtful_texts: Annotated[tuple[LostText, ...], Field(exclude=True)] = ()

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
        corrected: texts that were known under another label, which they lost.
        repeated: texts that were learned under this very label before, and are not counted twice.
        forgotten: texts that were taken back.
        not_found: texts that should have been taken back but were not known.
        unchecked: those of the forgotten texts of which nothing is kept that could tell if they were learned.
        emptied: classes that lost their last text, and are gone.
        is_balanced: whether every class weighs the same, because left-out texts of rare ones gain by it.
        is_exact: whether nothing is left of the labels and texts that were taken back; trained weights keep
            traces of what they were trained on.
        recognized: which of the texts learned so far will be recognized when they come again; None where
            that was not asked.
    """

    action: Literal["learn", "rename", "merge", "remove", "absorb", "forget", "improve"]
    when: Short
    new_classes: tuple[str, ...] = ()
    more_of: tuple[str, ...] = ()
    examples: Count = 0
    held_out: Annotated[Count, Field(validation_alias=formerly("held_back", "held_out"))] = 0
    accuracy: Share | None = None
    corrected: Count = 0
    repeated: Count = 0
    forgotten: Count = 0
    not_found: Count = 0
    unchecked: Count = 0
    emptied: Count = 0
    is_exact: bool = True
    is_balanced: bool = False
    recognized: Literal["all", "some", "none"] | None = None


class Familiarity(Record):
    """How sure it is that a text belongs to any known class, from two signs of it.

    It is the sigmoid of `offset` + `confidence` · logit(highest probability) + `nearness` · cosine with the
    nearest text learned.

    Attributes:
        confidence: weight of the first sign.
        nearness: weight of the second.
        offset: of both.
        threshold: what 95 % of texts of known classes reach.
        class_thresholds: the same for texts that are given one class, where enough texts are.
        least_nearness: the lowest cosine that any text of a known class had; what is farther away is unknown
            however sure the answer is. None where it was measured on few texts.
        texts: how many texts the thresholds were chosen by; None in older folders.
    """

    confidence: float
    nearness: float
    offset: float
    threshold: Share
    class_thresholds: dict[str, Share] = {}
    least_nearness: Annotated[float, Field(ge=-2, le=1)] | None = None
    texts: Annotated[Count, Field(ge=1)] | None = None


class LabelRule(Record):
    """When a text has a label, where it may have several: its score becomes a probability of its own.

    The probability is the sigmoid of `slope` · score + `offset`.

    Attributes:
        slope: weight of the score.
        offset: beside it.
        threshold: the least probability with which a text has the label.
    """

    slope: Annotated[float, Field(ge=0)]
    offset: float
    threshold: Share


class LabelRules(Record):
    """The rules of all labels.

    Attributes:
        common: for classes with few texts.
        classes: rules of their own, for classes with enough.
    """

    common: LabelRule
    classes: dict[str, LabelRule] = {}


class Calibration(Record):
    """How scores become probabilities, and when a text is unknown.

    Attributes:
        temperature: divides the scores before the softmax.
        threshold: the confidence that 95 % of the texts below reach; None without any.
        texts: how many texts temperature and threshold were chosen by.
        familiarity: a better sign than confidence alone; None where embeddings are not kept.
        labels: turn scores into probabilities where a text may have several labels; else None.
    """

    temperature: Annotated[float, Field(gt=0)] = 1.0
    threshold: Share | None = None
    texts: Count = 0
    familiarity: Familiarity | None = None
    labels: LabelRules | None = None

    @property
    def texts_of_unknown_rule(self) -> int:
        """How many texts decide what is unknown; in older folders perhaps fewer than this says."""
        if self.familiarity is None or self.familiarity.texts is None:
            return self.texts
        return self.familiarity.texts


class Blob(Record):
    """A file named by the sha256 of its bytes."""

    file: Annotated[str, StringConstraints(pattern=BLOB_NAME)]
    bytes: Annotated[int, Field(ge=0, le=LARGEST_FILE)]

    @property
    def digest(self) -> str:
        """The sha256 that the file's bytes have to have."""
        return self.file.partition(".")[0]


class ClassRecord(Record):
    """A class; `origins` stay the same when it is renamed and add up when classes are merged.

    Attributes:
        name: of the class.
        origins: where it comes from.
    """

    name: ClassName
    origins: tuple[str, ...]


class ExamplesRecord(Record):
    """A file of examples, one JSON object per line."""

    file: Blob
    count: Count

    @model_validator(mode="after")
    def _fits(self) -> "ExamplesRecord":
        if self.file.bytes > (self.count + 1) * LARGEST_LINE:
            raise ValueError(f"{self.count} examples do not need {self.file.bytes} bytes")
        return self


class KnownRecord(Record):
    """The hashes of texts that were learned.

    Attributes:
        keys: that the hashes are made with, in hexadecimal digits; the first one is for new texts.
        unlisted: classes of which texts were learned that have no hash here.
        table: hash, class and number of times of each text.
    """

    keys: Annotated[tuple[Key, ...], Field(min_length=1, max_length=10_000)]
    unlisted: tuple[ClassName, ...]
    table: Blob

    @model_validator(mode="after")
    def _fits(self) -> "KnownRecord":
        if self.table.bytes > LARGEST_TABLE:
            raise ValueError(f"hashes have at most {LARGEST_TABLE} bytes")
        return self


class EncoderRecord(Record):
    """What rebuilds the encoder without the package or folder it came from; weights are among the tensors."""

    name: Annotated[str, StringConstraints(max_length=5000)]
    config: Blob
    tokenizer: Blob

    @model_validator(mode="after")
    def _fits(self) -> "EncoderRecord":
        if max(self.config.bytes, self.tokenizer.bytes) > LARGEST_JSON:
            raise ValueError(f"configuration and tokenizer have at most {LARGEST_JSON} bytes")
        return self


class Parameters(BaseModel):
    """The arguments that a classifier is made with, as far as this version knows them."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, strict=True)

    method: str = ""
    encoder: str = ""
    memory_per_class: Count = 0
    memory_total: Count | None = None
    holdout_per_class: Count = 0
    preset: str = ""
    settings: dict[str, Any] | None = None
    tolerance: Share = 0.0
    seed: Seed = 0
    multilabel: bool = False


def _usable(parameters: dict[str, Any]) -> dict[str, Any]:
    Parameters.model_validate(parameters)
    return parameters


class Contents(Record):
    """Everything that a classifier needs to predict and to keep learning.

    Attributes:
        pieces: tensors of many rows, in several files, so that revisions share those that did not change.
        derived: what can be computed again from the rest; only the revision in use keeps it.
    """

    parameters: Annotated[dict[str, Any], AfterValidator(_usable)]
    method: Short
    kind: InputKind
    settings: dict[str, Any]
    seed: Seed
    tasks_learned: Count
    updates_made: Count
    label_type: LabelType
    classes: tuple[ClassRecord, ...]
    declared: tuple[ClassName, ...]
    calibration: Calibration
    encoder: EncoderRecord
    tensors: dict[str, Blob]
    memory: ExamplesRecord
    held_out: Annotated[ExamplesRecord, Field(validation_alias=formerly("held_back", "held_out"))]
    known: KnownRecord | None = None
    pieces: dict[str, tuple[Blob, ...]] = {}
    derived: dict[str, Blob] = {}

    @model_validator(mode="after")
    def _adds_up(self) -> "Contents":
        _check_distinct([record.name for record in self.classes])
        _check_distinct(self.declared)
        if self.known and not {record.name for record in self.classes}.issuperset(self.known.unlisted):
            raise ValueError("a class without hashes is not there")
        if self.label_type == "number" and not all(map(is_whole_number, self.names)):
            raise ValueError("labels are numbers, but not all classes have one")
        _check_sizes([*self.blobs(), *self.derived.values()])
        return self

    @property
    def names(self) -> list[str]:
        """All classes, also those announced only."""
        return list(dict.fromkeys([*(record.name for record in self.classes), *self.declared]))

    def blobs(self) -> list[Blob]:
        """All files that this cannot do without."""
        return [
            self.encoder.config,
            self.encoder.tokenizer,
            self.memory.file,
            self.held_out.file,
            *self.tensors.values(),
            *(blob for blobs in self.pieces.values() for blob in blobs),
            *([self.known.table] if self.known else []),
        ]


class SecondGraph(Record):
    """A graph of full precision that is asked again where the first one is in doubt.

    Attributes:
        graph: the file.
        tables: as those of the first one.
        doubt: the first one is in doubt where its best class is ahead of the second by less than this.
    """

    graph: Blob
    tables: Annotated[dict[Short, Blob], Field(max_length=1000)] = {}
    doubt: Annotated[float, Field(ge=0)]


class Export(Record):
    """How texts are answered without torch: a graph of operations in ONNX form.

    Attributes:
        origin: hash of what the graph was made from; revisions that have the same are answered by it.
        is_shared: whether only the frozen encoder counts for that, for all that is learned is handed in.
        precision: of the encoder's products.
        graph: the file.
        tables: large tensors that never change and are handed in with every question, by their names there.
        readout: how texts become tokens.
        max_length: the longest input in tokens.
        second: what is asked again where the graph is in doubt; None where it never is.
        solution: names of the derived tensors that are handed in with every question.
        solved: those of them that were solved again, because the revision does not have them as such.
        solved_for: hash of the contents that they were solved from.
        calibration: of the scores that the graph gives, where they differ from those of torch.
        calibrated_for: hash of the contents whose texts it was chosen by, or were too few to choose one.
        when: it was made, UTC.
        version: of repcl.
    """

    origin: Digest
    is_shared: bool
    precision: Precision
    graph: Blob
    tables: Annotated[dict[Short, Blob], Field(max_length=1000)] = {}
    second: SecondGraph | None = None
    readout: Short
    max_length: Annotated[int, Field(ge=1, le=512)]
    solution: Annotated[tuple[Short, ...], Field(max_length=1000)] = ()
    solved: Annotated[dict[Short, Blob], Field(max_length=1000)] = {}
    solved_for: Digest | None = None
    calibration: Calibration | None = None
    calibrated_for: Digest | None = None
    when: Short
    version: Short

    @property
    def files(self) -> tuple[Blob, ...]:
        """All files that it needs beside those of a revision."""
        second = (self.second.graph, *self.second.tables.values()) if self.second else ()
        return tuple(dict.fromkeys((self.graph, *self.tables.values(), *second)))

    def fits(self, contents: Contents) -> bool:
        """Whether it answers for a revision with these contents."""
        return self.origin == origin_of(contents, is_shared=self.is_shared)

    def solved_from(self, contents: Contents) -> dict[str, Blob]:
        """What was solved again from these contents, by name."""
        is_theirs = self.solved_for is not None and self.solved_for == digest_of(contents)
        return self.solved if is_theirs else {}

    def is_calibrated_for(self, contents: Contents) -> bool:
        """Whether a calibration was tried with these contents; there may have been too few texts for one."""
        return self.calibrated_for is not None and self.calibrated_for == digest_of(contents)

    def calibration_for(self, contents: Contents) -> Calibration | None:
        """The calibration of its own scores; None where those of torch will do or nothing else is there."""
        return self.calibration if self.is_calibrated_for(contents) else None


def origin_of(contents: Contents, *, is_shared: bool) -> str:
    """A hash of all that decides what an export computes; shared ones are handed what was learned."""
    tensors = {
        name: blob.digest
        for name, blob in contents.tensors.items()
        if not is_shared or name.startswith(ENCODER)
    }
    encoder = contents.encoder
    return _digest(
        {
            "method": contents.method,
            "kind": contents.kind,
            "settings": contents.settings,
            "config": encoder.config.digest,
            "tokenizer": encoder.tokenizer.digest,
            "tensors": tensors,
        }
    )


def digest_of(contents: Contents) -> str:
    """A hash of the whole contents."""
    return _digest(contents.model_dump(mode="json"))


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

    number: Number
    parent: Number | None
    when: Short
    version: Short
    updates: tuple[Update, ...]
    contents: Contents

    @property
    def is_refused(self) -> bool:
        """Whether the guard refused one of its updates."""
        return any(update.is_refused and update.action not in ASKED_FOR for update in self.updates)

    def __repr__(self) -> str:
        """Which revision it is and what was done, without the list of its files."""
        done = "+".join(update.action for update in self.updates) or "save"
        parent = "" if self.parent is None else f", parent={self.parent}"
        return f"Revision({self.number}{parent}, {self.when}, {done}, classes={len(self.contents.classes)})"

    __str__ = __repr__


class Current(Record):
    """Which revision is in use, the highest number given so far, and how many revisions to keep.

    Attributes:
        revision: the one in use.
        last: the highest number given.
        keep_last: how many of the newest revisions are kept, beside the one in use; all if not given.
    """

    revision: Number
    last: Number
    keep_last: Number | None = None

    @model_validator(mode="after")
    def _adds_up(self) -> "Current":
        if self.last < self.revision:
            raise ValueError("the highest number given is below the one in use")
        return self


def _check_sizes(blobs: Sequence[Blob]) -> None:
    """Refuse more bytes than a model has, also where few files give many by being named again and again."""
    size = sum({blob.file: blob.bytes for blob in blobs}.values())
    if size > LARGEST_MODEL:
        raise ValueError(f"the files have more than {LARGEST_MODEL} bytes")
    if sum(blob.bytes for blob in blobs) > 2 * size + MOST_REPEATED:
        raise ValueError("files are named so often that they unpack to many times their size")


def _check_distinct(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError("two classes have one name")


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
        found = json.loads(data.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
        if b"\\ud" in data.lower():  # half of a surrogate pair is no text, and could not be written or shown
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except (ValueError, RecursionError) as error:
        raise DamagedModel(f"Expected JSON in {where}, found something else.") from error


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    """A number; one that is too large to be one, such as 1e999, could not be written again."""
    found = float(digits)
    return found if math.isfinite(found) else _no_number(digits)


def read_record(data: bytes, kind: type[Record], where: str) -> Any:
    """A record of a kind from the bytes of a checked file."""
    head = parse_json(data, where)
    if not isinstance(head, dict) or type(head.get("format")) is not int or not 0 < head["format"] < 10**6:
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
        raise DamagedModel(f"{where} is not what repcl writes: {first_problem(error)}.") from error


def as_text(name: str) -> str:
    """A name that UTF-8 can hold: a path's bytes that are no text are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


def one_line(error: Exception | str) -> str:
    """What an error says, short enough to stand inside a sentence, without signs that move the cursor."""
    text = " ".join(str(error).split())[:200]
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _digest(body: Any) -> str:
    plain = json.dumps(body, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return sha256(plain.encode()).hexdigest()


def first_problem(error: Exception) -> str:
    """What a record lacks, first of all, short enough to stand inside a sentence."""
    if not isinstance(error, ValidationError):
        return "nested too deeply"
    problem = error.errors(include_input=False, include_url=False)[0]
    where = one_line(".".join(map(str, problem["loc"])))
    return f"{where or 'the record'}, {one_line(problem['msg'].lower())}"
