"""The table of methods: one line for each, and nothing heavy to import; classes are loaded when asked for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from repcl.data.examples import InputKind
from repcl.errors import UnknownName

if TYPE_CHECKING:
    from repcl.methods.base import Method

ANY: tuple[InputKind, ...] = ("sentence", "relation", "event")


@dataclass(frozen=True)
class MethodEntry:
    """What can be said about a method without loading it.

    Attributes:
        path: `module:Class`.
        description: how it learns, in a few words.
        paper: who proposed it, or what it is if nobody did.
        year: when, if it was proposed.
        cost: work of a whole run relative to FEA's under preset `cpu`: CPU seconds, testing
            included, as `benchmarks/method_cost.py --tasks 3` measured them on `demo`.
        kinds: the inputs that it takes.
        keeps_texts: whether it keeps training texts.
        also_keeps: what it computes from old data and keeps, beyond texts and weights.
        variants: its variants, each with its own cost; None where it costs what the method costs.
    """

    path: str
    description: str
    paper: str
    year: int | None
    cost: float
    kinds: tuple[InputKind, ...] = ANY
    keeps_texts: bool = True
    also_keeps: str = "none"
    variants: Mapping[str, float | None] = field(default_factory=dict)

    def load(self) -> "type[Method]":
        """The class."""
        module, _, name = self.path.partition(":")
        loaded: type[Method] = getattr(import_module(module), name)
        return loaded


# fmt: off
TABLE: Mapping[str, MethodEntry] = {
    "repcl": MethodEntry(
        "repcl.methods.repcl:RepCL", "contrastive and generative initial learning, adversarial replay",
        "Song et al.", 2023, 1.99,
        variants={
            "no-con": 1.8, "no-xmlm": 1.4, "no-adv": 1.7,  # these three by counting passes
            "mlm": None, "supcon": None, "infonce": None, "retain": None,
            "hidden-contrast": None, "all-texts-xmlm": 2.9, "weak-xmlm": None, "no-clean": None,
            "three-steps": 2.3, "long": 4.0, "fast-momentum": None, "slow": None,  # costs by counting passes
            "draw-1": None, "draw-2": None,
        },
    ),
    "fea": MethodEntry(
        "repcl.methods.fea:FEA", "the new task alone, then a balanced memory",
        "Wang et al.", 2022, 1.0, variants={"infomax": 1.55, "retain": None},
    ),
    "emar": MethodEntry(
        "repcl.methods.emar:EMAR", "replay in turn with a return to prototypes",
        "Han et al.", 2020, 0.87, also_keeps="class prototypes",
    ),
    "rp_cre": MethodEntry(
        "repcl.methods.rp_cre:RPCRE", "features refined by attention to prototypes",
        "Cui et al.", 2021, 1.29, also_keeps="class prototypes",
    ),
    "crl": MethodEntry(
        "repcl.methods.crl:CRL", "contrastive replay that keeps the similarities of classes",
        "Zhao et al.", 2022, 1.15, also_keeps="class prototypes", variants={"no-kd": None},
    ),
    "crecl": MethodEntry(
        "repcl.methods.crecl:CRECL", "a classifier, then texts matched with prototypes",
        "Hu et al.", 2022, 2.84, also_keeps="class prototypes",
    ),
    # Its cost grows with the number of tasks, for it replays each of them: on HWU64 with ten it was 2.5.
    "idbr": MethodEntry(
        "repcl.methods.idbr.method:IDBR", "general and task-specific features, held near what they were",
        "Huang et al.", 2021, 1.09,
        variants={
            "no-order": None, "no-task": None, "no-retention": None, "regularization": None, "cls": None,
        },
    ),
    "kcn": MethodEntry(
        "repcl.methods.kcn:KCN", "new data and exemplars together, under distillation",
        "Cao et al.", 2020, 0.89, variants={"linear": None, "paired": None, "kmeans": None},
    ),
    "kdrk": MethodEntry(
        "repcl.methods.kdrk:KDRK", "distillation, with knowledge moved between old and new classes",
        "Yu et al.", 2021, 0.96,
        variants={
            "balanced": None, "median-gate": None, "no-none": None, "no-transfer": None, "sharp-replay": None,
        },
    ),
    # Its cost was measured on FewRel, two tasks, 10 texts per class.
    "aca": MethodEntry(
        "repcl.methods.aca:ACA", "synthetic classes beside the real ones, on EMAR or RP-CRE",
        "Wang et al.", 2022, 0.7, kinds=("relation",), also_keeps="class prototypes",
        variants={"rp_cre": None},
    ),
    "sequential": MethodEntry(
        "repcl.methods.sequential:Sequential", "fine-tuning on each task, without a memory",
        "lower bound", None, 0.49, keeps_texts=False,
    ),
    "joint": MethodEntry(
        "repcl.methods.joint:Joint", "training on all data at the end of the stream",
        "upper bound", None, 0.52, also_keeps="all training texts",
    ),
    "instant": MethodEntry(
        "repcl.methods.frozen.instant:Instant", "frozen encoder, ridge regression on random features",
        "McDonnell et al.", 2023, 0.18, keeps_texts=False, also_keeps="Gram matrices, class sums, embeddings",
        variants={"last-layer": None, "vote": None},
    ),
    "ncm": MethodEntry(
        "repcl.methods.frozen.ncm:NCM", "frozen encoder, nearest class mean",
        "Mensink et al.", 2013, 0.14, keeps_texts=False, also_keeps="class means, embeddings",
        variants={"last-layer": None},
    ),
    "lda": MethodEntry(
        "repcl.methods.frozen.lda:LDA", "frozen encoder, class means and one covariance",
        "Hayes and Kanan", 2020, 0.13, keeps_texts=False,
        also_keeps="class means, one covariance, embeddings",
        variants={"last-layer": None},
    ),
    "refit": MethodEntry(
        "repcl.methods.frozen.refit:Refit", "frozen encoder, logistic regression on all embeddings",
        "logistic regression", None, 0.13, keeps_texts=False, also_keeps="embeddings of all texts",
        variants={"last-layer": None},
    ),
    "first_session": MethodEntry(
        "repcl.methods.frozen.first_session:FirstSession", "encoder trained on the first task, then instant",
        "Panos et al.", 2023, 0.2, keeps_texts=False, also_keeps="Gram matrices, class sums, embeddings",
        variants={"last-layer": None, "vote": None},
    ),
    # The costs of duet and tower are estimates by counting passes; they were not measured yet.
    "duet": MethodEntry(
        "repcl.methods.duet:Duet", "a trained method and a frozen learner, whose votes are added",
        "a duet", None, 2.2, variants={"statistics": None},
    ),
    "tower": MethodEntry(
        "repcl.methods.frozen.tower:Tower", "frozen encoder, softmax regression with old classes anchored",
        "anchored regression", None, 0.14, variants={"last-layer": None},
    ),
}
# fmt: on


def method_entry(name: str) -> MethodEntry:
    """The line of a method in the table."""
    if name not in TABLE:
        raise UnknownName("method", name, TABLE)
    return TABLE[name]


def relative_cost(row: str) -> float:
    """Work of a run of `method` or `method@variant` relative to FEA; 1 for a method not in the table."""
    name, _, variant = row.partition("@")
    if name not in TABLE:
        return 1.0
    own = TABLE[name].variants.get(variant)
    return TABLE[name].cost if own is None else own


class LoadedMethods(Mapping[str, "type[Method]"]):
    """The classes by name; each is imported when it is asked for."""

    def __getitem__(self, name: str) -> "type[Method]":
        return TABLE[name].load()

    def __contains__(self, name: object) -> bool:
        return name in TABLE

    def __iter__(self) -> Iterator[str]:
        return iter(TABLE)

    def __len__(self) -> int:
        return len(TABLE)


METHODS = LoadedMethods()
