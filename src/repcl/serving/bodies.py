"""What requests and answers hold, as the OpenAPI document shows it."""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from repcl.data.examples import SPANS, Example, InputKind, Span, check_spans
from repcl.serving.options import EXAMPLES_PER_REQUEST, LABEL_LENGTH, TEXT_LENGTH, TEXTS_PER_REQUEST

PLAIN, MARKED = ALTERNATIVES = ("(a text)", "(a text with spans)")
"""The forms that a text to be answered may have, as they are called in errors."""
MOST_TOP = 100
MOST_NEAREST = 20
MOST_REVISION = 999_999

Text = Annotated[str, StringConstraints(max_length=TEXT_LENGTH)]
FullText = Annotated[str, StringConstraints(max_length=TEXT_LENGTH, pattern=r"\S")]
Label = Annotated[
    str, StringConstraints(min_length=1, max_length=LABEL_LENGTH, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")
]
Bound = Annotated[int, Field(ge=0, le=TEXT_LENGTH)]
Pair = Annotated[tuple[Bound, Bound], Field(description="Characters [start, end) of the text.")]


class Asked(BaseModel):
    """A part of a request: names that it does not have are refused."""

    model_config = ConfigDict(extra="forbid")


class Marked(Asked):
    """The spans that a text may have: head and tail for relations, the trigger for events."""

    text: Text
    head: Pair | None = None
    tail: Pair | None = None
    trigger: Pair | None = None

    @model_validator(mode="after")
    def _spans_lie_in_the_text(self) -> "Marked":
        check_spans(self.text, {name: getattr(self, name) for name in SPANS})
        return self

    def example(self, label: str = "") -> Example:
        """The example that is meant."""
        pairs = {name: getattr(self, name) for name in SPANS}
        spans: dict[str, Any] = {name: Span(*pair) for name, pair in pairs.items() if pair is not None}
        return Example(self.text, label, **spans)


class MarkedText(Marked):
    """A text to be answered, with marked spans."""


class LabeledText(Marked):
    """A text with its label; `a|b` are two labels where the model allows several."""

    text: FullText
    label: Label

    def labeled(self) -> Example:
        """The example with its label."""
        return self.example(self.label)


def _alternative(value: Any) -> str:
    return PLAIN if isinstance(value, str) else MARKED


class PredictRequest(Asked):
    """Texts to be answered."""

    texts: Annotated[
        list[
            Annotated[
                Annotated[Text, Tag(PLAIN)] | Annotated[MarkedText, Tag(MARKED)], Discriminator(_alternative)
            ]
        ],
        Field(max_length=TEXTS_PER_REQUEST, examples=[["where is my parcel", "I want my money back"]]),
    ]
    top: Annotated[int, Field(ge=1, le=MOST_TOP, description="How many classes to name.")] = 3
    nearest: Annotated[int, Field(ge=0, le=MOST_NEAREST, description="How many kept texts to show.")] = 0
    collect: Annotated[
        bool, Field(description="Whether a service that keeps unsure texts may keep these.")
    ] = True

    def examples(self) -> list[Example]:
        """The texts as the classifier takes them."""
        return [Example(one, "") if isinstance(one, str) else one.example() for one in self.texts]


class LearnRequest(Asked):
    """Texts to be learned; labels that the model does not know are new classes."""

    examples: Annotated[
        list[LabeledText],
        Field(
            min_length=1,
            max_length=EXAMPLES_PER_REQUEST,
            examples=[[{"text": "I want my money back", "label": "refund"}]],
        ),
    ]
    collected: Annotated[
        list[Annotated[str, StringConstraints(max_length=64)]],
        Field(max_length=EXAMPLES_PER_REQUEST, description="Collected texts that this settles."),
    ] = []


class EvaluateRequest(Asked):
    """Texts with their right labels, to be compared with the model's answers."""

    examples: Annotated[
        list[LabeledText],
        Field(
            min_length=1,
            max_length=TEXTS_PER_REQUEST,
            examples=[[{"text": "I want my money back", "label": "refund"}]],
        ),
    ]


class RenameRequest(Asked):
    """A class and its new name."""

    old: Annotated[Label, Field(examples=["refund"])]
    new: Annotated[Label, Field(examples=["money back"])]


class MergeRequest(Asked):
    """Classes that become one."""

    labels: Annotated[list[Label], Field(min_length=1, max_length=1000, examples=[["refund", "money back"]])]
    into: Annotated[Label, Field(examples=["refund"])]


class RemoveRequest(Asked):
    """A class to be forgotten."""

    label: Annotated[Label, Field(examples=["refund"])]
    purge: Annotated[bool, Field(description="Also delete older revisions that hold it.")] = False


class RollbackRequest(Asked):
    """A revision to go back to."""

    revision: Annotated[int, Field(ge=1, le=MOST_REVISION, examples=[1])]


class EraseRequest(Asked):
    """Collected texts to be erased: some, or all of them."""

    ids: Annotated[
        list[Annotated[str, StringConstraints(max_length=64)]], Field(max_length=EXAMPLES_PER_REQUEST)
    ] = []
    all: bool = False


# ---- answers ------------------------------------------------------------------------------------


class FieldProblem(BaseModel):
    """One thing that is wrong about a request."""

    location: str
    message: str


class ProblemBody(BaseModel):
    """An error as RFC 9457 describes it."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] | None = None


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class Ready(BaseModel):
    """A revision is loaded."""

    status: Literal["ready"]
    revision: int


class LimitsBody(BaseModel):
    """What a request may hold at most."""

    texts_per_request: int
    examples_per_request: int
    text_length: int
    label_length: int
    body_bytes: int


class ModelBody(BaseModel):
    """The model that is served, and what may be done with it."""

    name: str
    method: str
    kind: InputKind
    multilabel: bool
    revision: int
    classes: int
    texts: int | None
    can_write: bool
    why_not: str | None
    needs_token: bool
    collects: bool
    version: str
    limits: LimitsBody


class Ranked(BaseModel):
    """A class and how likely it is."""

    label: str
    probability: float


class Near(BaseModel):
    """A kept text that is like the one asked about."""

    text: str
    label: str
    similarity: float


class Prediction(BaseModel):
    """The answer to one text: no label where it is unknown, several where the model allows that."""

    label: str | None
    labels: list[Ranked]
    unknown: bool
    confidence: float
    top: list[Ranked]
    nearest: list[Near]


class PredictBody(BaseModel):
    """Answers in the order of the texts, all from one revision."""

    revision: int
    predictions: list[Prediction]


class Progress(BaseModel):
    """How far a stage of learning is."""

    stage: str
    done: int
    total: int
    seconds_left: float | None


class JobProblem(BaseModel):
    """Why a job ended without a revision."""

    title: str
    detail: str


class ClassEffect(BaseModel):
    """What a job did to an old class: the share of its checked texts that was right before and after."""

    label: str
    texts: int
    before: float | None
    after: float | None
    regressed: bool
    taken_by: str | None = None
    lost_texts: list[str] = []
    advice: str | None = None


class DoubtfulText(BaseModel):
    """A text of a refused job, the label it came with, and the one that all other texts speak for."""

    text: str
    label: str
    likelier: str


class Summary(BaseModel):
    """What a job did, and why the guard advises against it; the worst classes and texts come first."""

    sentence: str
    reasons: list[str] = []
    new_classes: list[str] = []
    examples: int = 0
    corrected: int = 0
    accuracy_before: float | None = None
    accuracy_after: float | None = None
    classes: list[ClassEffect] = []
    doubtful_texts: list[DoubtfulText] = []
    notes: list[str] = []


Action = Literal["learn", "rename", "merge", "remove", "rollback"]
State = Literal["queued", "running", "refused", "done", "failed", "canceled", "lost", "discarded"]


class JobBody(BaseModel):
    """A change of the model: waiting, under way, or over."""

    id: str
    action: Action
    state: State
    progress: Progress | None = None
    created: str
    started: str | None = None
    finished: str | None = None
    revision: int | None = None
    problem: JobProblem | None = None
    summary: Summary | None = None


class JobsBody(BaseModel):
    """Jobs, the newest first."""

    jobs: list[JobBody]


class Confused(BaseModel):
    """The class that another one is mixed up with most."""

    label: str
    count: int


class ClassBody(BaseModel):
    """A class at a glance."""

    label: str
    texts: int | None
    checked: int
    recall: float | None
    confused_with: Confused | None
    kept: int


class ClassesBody(BaseModel):
    """All classes by name."""

    revision: int
    classes: list[ClassBody]


class ClassTextsBody(BaseModel):
    """The texts of a class that are kept word for word."""

    label: str
    texts: list[str]


class RevisionBody(BaseModel):
    """One state of the model."""

    number: int
    parent: int | None
    when: str
    action: str
    sentence: str
    classes: int
    accuracy: float | None
    is_current: bool
    is_refused: bool
    is_accepted: Annotated[bool, Field(description="Whether a refused revision was used all the same.")]


class HistoryBody(BaseModel):
    """All revisions, oldest first."""

    current: int
    revisions: list[RevisionBody]


class CollectedBody(BaseModel):
    """A text that the model was not sure of."""

    id: str
    text: str
    head: Pair | None = None
    tail: Pair | None = None
    trigger: Pair | None = None
    label: str | None
    confidence: float
    when: str


class GroupBody(BaseModel):
    """Collected texts that are alike."""

    texts: list[CollectedBody]


class UnknownBody(BaseModel):
    """Collected texts in groups, the largest first."""

    collects: bool
    total: int
    groups: list[GroupBody]


class ErasedBody(BaseModel):
    """How many collected texts were erased, and how many are left."""

    erased: int
    total: int


class ClassScore(BaseModel):
    """How well one class is answered."""

    label: str
    texts: int
    recall: float
    precision: float | None


class Confusion(BaseModel):
    """Texts of one class that get another one's label, the model's surest first."""

    label: str
    predicted: str
    count: int
    texts: list[str]


class EvaluateBody(BaseModel):
    """The model's answers compared with the right labels."""

    revision: int
    texts: Annotated[int, Field(description="How many texts were compared.")]
    unknown_labels: Annotated[
        dict[str, int],
        Field(description="How many texts have each label that the model does not know: not compared."),
    ]
    accuracy: float
    macro_recall: float
    classes: list[ClassScore]
    confusions: list[Confusion]
