"""The paper as data: every number of its tables, and what it says about one row of ours."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from pydantic import BaseModel, ConfigDict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# other names of the encoder that the paper used
BERT_BASE = ("bert-base-uncased", "google-bert/bert-base-uncased")

MAIN_BENCHMARKS = ("fewrel", "tacred", "maven", "hwu64")


class Slip(BaseModel):
    """A number that the paper gives in two ways."""

    model_config = ConfigDict(frozen=True)

    benchmark: str
    method: str
    note: str


class Paper(BaseModel):
    """The paper's tables as printed: percent, mutual information in nats; by benchmark, then by row.

    Attributes:
        main: final accuracy and forgetting rate.
        full: accuracy after each task, then the forgetting rate.
        ablation: final accuracy.
        memory: final accuracy for several sizes of the memory.
        information: I(X1;Z1) and I(Z;Y).
        representation: I(X1;Z1), I(Z1;Z1+) and final accuracy.
        hyperparameters: RepCL's settings.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    authors: str
    encoder: str
    rounds: int
    tasks: int
    slips: list[Slip]
    main: Mapping[str, Mapping[str, tuple[float, float]]]
    full: Mapping[str, Mapping[str, tuple[float, ...]]]
    ablation: Mapping[str, Mapping[str, float]]
    memory: Mapping[str, Mapping[str, float]]
    information: Mapping[str, Mapping[str, tuple[float, float]]]
    representation: Mapping[str, Mapping[str, tuple[float, float, float]]]
    hyperparameters: Mapping[str, Mapping[str, float]]

    def published(self, benchmark: str, row: str) -> "Published | None":
        """What the paper reports for a row of ours, from whichever of its tables has it."""
        if row in self.main.get(benchmark, {}):
            accuracy, forgetting = self.main[benchmark][row]
            *after_task, _ = self.full[benchmark][row]
            return Published(accuracy, forgetting, tuple(after_task))
        for table in (self.ablation, self.memory):
            if row in table.get(benchmark, {}):
                return Published(table[benchmark][row])
        if row in self.representation.get(benchmark, {}):
            return Published(self.representation[benchmark][row][-1])
        return None

    def notes(self, benchmark: str, row: str) -> list[str]:
        """Where the paper contradicts itself about a row of ours."""
        return [slip.note for slip in self.slips if (slip.benchmark, slip.method) == (benchmark, row)]


@dataclass(frozen=True)
class Published:
    """The paper's numbers for one method on one benchmark, in percent."""

    accuracy: float
    forgetting: float | None = None
    after_task: tuple[float, ...] = ()


@lru_cache(maxsize=1)
def load_paper() -> Paper:
    """Read the paper's tables."""
    text = resources.files("repcl.experiments.paper").joinpath("numbers.toml").read_text(encoding="utf-8")
    return Paper(**tomllib.loads(text))


def is_papers_encoder(name: str) -> bool:
    """Whether results with this encoder can be compared with the paper's number by number."""
    return name in BERT_BASE
