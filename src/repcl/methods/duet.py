"""Duet: a method that trains its encoder and one that never does, each with a vote on every text.

One adapts, the other cannot forget, and their mistakes differ. Nothing is copied from either: both learn
every task as they would alone, and share the exemplars that the trained one chooses.
"""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Literal, cast

import torch
from pydantic import Field, create_model, field_validator
from torch import Tensor, nn

from repcl.data import Batch, Example, InputKind, Task
from repcl.errors import InvalidSetting
from repcl.methods.base import Method
from repcl.methods.frozen.reader import FrozenReader
from repcl.methods.frozen.tower import Tower
from repcl.methods.settings import MemorySettings, MethodSettings, make_settings
from repcl.methods.table import method_entry
from repcl.methods.voting import standardized
from repcl.model import Readout

TrainedPart = Literal["repcl", "fea", "emar", "rp_cre", "crl", "crecl", "idbr", "kcn", "kdrk", "aca"]
FrozenPart = Literal["tower", "vote"]
FROZEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "tower": ("tower", {}),
    "vote": ("instant", {"vote": True, "keep_embeddings": True, "multilabel": False}),
}
"""The method that each frozen part is, and what makes it that part."""


class DuetSettings(MemorySettings):
    """Settings of a duet's own; those of its parts stand beside them."""

    trained: TrainedPart = Field("repcl", description="the method that trains its encoder")
    frozen: tuple[FrozenPart, ...] = Field(
        ("tower",),
        min_length=1,
        description="what learns on the frozen encoder: tower (keeps only exemplars and weights), vote "
        "(instant with refit; keeps sums and embeddings), or both",
    )

    @property
    def other_draw(self) -> int:
        """That of the trained part, if it has any."""
        return int(getattr(self, "draw", 0))

    @field_validator("frozen", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


@cache
def settings_with_parts(trained: str, frozen: tuple[str, ...]) -> type[DuetSettings]:
    """The settings of a duet and of its parts, side by side."""
    fields: dict[str, Any] = {}
    for name, fixed in ((trained, {}), *(FROZEN[part] for part in frozen)):
        known = method_entry(name).load().Settings.model_fields
        fields |= {key: (field.annotation, field) for key, field in known.items() if key not in fixed}
    own = {key: field for key, field in fields.items() if key not in DuetSettings.model_fields}
    combined: type[DuetSettings] = create_model("DuetSettings", __base__=DuetSettings, **own)
    combined.search = method_entry(trained).load().Settings.search
    return combined


class Duet(Method):
    """A trained and a frozen learner, whose standardized scores are added with equal weights."""

    Settings: ClassVar[type[DuetSettings]] = settings_with_parts("repcl", ("tower",))
    settings: DuetSettings
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {"statistics": {"frozen": ("vote",)}}
    encoder_path = "trained.encoder"

    @classmethod
    def settings_class(cls, values: Mapping[str, Any]) -> type[MethodSettings]:
        """Those of the duet with the parts that the values name."""
        own = make_settings(
            DuetSettings, {key: values[key] for key in ("trained", "frozen") if key in values}
        )
        return settings_with_parts(own.trained, own.frozen)

    @classmethod
    def known_settings(cls, values: Mapping[str, Any]) -> Collection[str]:
        """Those of the duet with any frozen part."""
        return cls.settings_class({**values, "frozen": tuple(FROZEN)}).model_fields

    @classmethod
    def parts_of(cls, values: Mapping[str, Any]) -> tuple[str, ...]:
        """The frozen methods, then the trained one, which has the last word on what they share."""
        own = make_settings(
            DuetSettings, {key: values[key] for key in ("trained", "frozen") if key in values}
        )
        return (*(FROZEN[part][0] for part in own.frozen), own.trained)

    @classmethod
    def resolved(cls, settings: MethodSettings, kind: InputKind) -> MethodSettings:
        """The settings with everything decided that the parts leave open for this input kind."""
        for chosen, own in _parts(settings):
            if kind not in chosen.kinds:
                raise InvalidSetting(
                    f"A duet with trained = {getattr(settings, 'trained', '')!r} works on "
                    f"{', '.join(chosen.kinds)} input, not on {kind} input."
                )
            decided = chosen.resolved(own, kind).model_dump()
            fields = type(settings).model_fields
            settings = settings.model_copy(update={key: decided[key] for key in decided if key in fields})
        return settings

    @classmethod
    def readout(cls, settings: MethodSettings, kind: InputKind) -> Readout:
        """The trained part's; the frozen one reads its own copy of the encoder."""
        (chosen, own), *_ = _parts(settings)
        return chosen.readout(own, kind)

    def build_parts(self) -> None:
        """The trained part on the encoder, and frozen ones on copies of it as it is before the first task."""
        encoder = self.encoder
        untouched = [copy.deepcopy(encoder).eval() for _ in self.settings.frozen]
        (trained, its_settings), *others = _parts(self.settings)
        if getattr(its_settings, "precision", "full") == "bf16":  # of the copies nothing is trained
            encoder.processes = replace(encoder.processes, precision="bf16")
        built = trained.for_settings(its_settings)
        self.trained = built(encoder, its_settings, seed=self.seed, expected_classes=self.expected_classes)
        self.frozen = nn.ModuleDict()
        for name, own_copy, (chosen, own) in zip(self.settings.frozen, untouched, others, strict=True):
            self.frozen[name] = chosen.for_settings(own)(own_copy, own, seed=self.seed)
        for part in self.frozen_parts.values():
            if isinstance(part, Tower):
                part.chooses_exemplars = False
        del self.encoder  # it is the trained part's; a second name for it would be saved a second time
        vars(self)["encoder"] = encoder
        self.memory = self.trained.memory

    @property
    def frozen_parts(self) -> dict[str, FrozenReader]:
        """The frozen learners by name."""
        return {name: part for name, part in self.frozen.items() if isinstance(part, FrozenReader)}

    @property
    def parts(self) -> list[Method]:
        """The trained learner, then the frozen ones."""
        return [self.trained, *self.frozen_parts.values()]

    # ---- learning and predicting ----------------------------------------------------------------

    def learn_task(self, task: Task) -> None:
        """Let every part learn; the frozen ones first, while the exemplars are those of earlier tasks."""
        for part in reversed(self.parts):
            part.observer, part.memory = self.observer, self.memory
            part.learn(task, more_follow=self.more_follow)

    def scores(self, examples: Sequence[Example]) -> Tensor:
        """Votes of all parts for all seen classes, added, (examples, seen classes), on the CPU."""
        return self.added(self.votes(examples), self.settings.frozen)

    def votes(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """Scores of each part, by its name; "trained" for the trained one."""
        return {
            "trained": self.trained.scores(examples),
            **{name: part.scores(examples) for name, part in self.frozen_parts.items()},
        }

    @staticmethod
    def added(votes: Mapping[str, Tensor], frozen: Sequence[str]) -> Tensor:
        """The vote of the trained part and of these frozen ones, added; alone it stays as it is."""
        if not frozen:
            return votes["trained"]
        if not len(votes["trained"]):
            return votes["trained"]
        return sum(
            (standardized(votes[name]) for name in ("trained", *frozen)), start=torch.zeros(())
        ).float()

    def class_scores(self, batch: Batch) -> Tensor:
        """Refused: the parts read a text in different ways, which a batch can hold only one of."""
        raise NotImplementedError("A duet scores examples, not batches: call `scores`.")

    # ---- what both keep -------------------------------------------------------------------------

    def resume(self, classes: Sequence[str], tasks_learned: int) -> None:
        """Go on with classes that were learned before."""
        super().resume(classes, tasks_learned)
        for part in self.parts:
            part.resume(classes, tasks_learned)

    def regroup_classes(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Keep only these classes, in this order, each made of one or several old ones."""
        for part in self.parts:  # the trained one first, for it may refuse
            part.regroup_classes(groups)
        self.memory, self.classes = self.trained.memory, list(groups)

    def take_back(self, examples: Sequence[Example]) -> None:
        """Drop examples from all that is kept; the frozen sums lose them without a trace."""
        for part in self.parts:
            part.take_back(examples)

    def statistics_bytes(self) -> int:
        """Bytes that the parts keep beyond exemplars and weights."""
        return sum(part.statistics_bytes() for part in self.parts)

    def check_loaded(self) -> None:
        """Raise where loaded values of a part contradict each other."""
        for part in self.parts:
            part.check_loaded()

    @property
    def many_rows(self) -> Sequence[str]:
        """Those of the frozen parts."""
        parts = self.frozen_parts.items()
        return [f"frozen.{name}.{path}" for name, part in parts for path in part.many_rows]

    def derived(self) -> dict[str, Tensor]:
        """What the frozen parts can compute again."""
        parts = self.frozen_parts.items()
        return {f"frozen.{name}.{path}": own for name, part in parts for path, own in part.derived().items()}

    def derived_shapes(self) -> dict[str, tuple[int, ...]]:
        """Those of the frozen parts."""
        parts = self.frozen_parts.items()
        return {
            f"frozen.{name}.{path}": shape
            for name, part in parts
            for path, shape in part.derived_shapes().items()
        }

    def take_derived(self, found: Mapping[str, Tensor]) -> None:
        """Hand each frozen part what it computed before."""
        for name, part in self.frozen_parts.items():
            start = f"frozen.{name}."
            part.take_derived(
                {path.removeprefix(start): own for path, own in found.items() if path.startswith(start)}
            )


def _parts(settings: MethodSettings) -> list[tuple[type[Method], MethodSettings]]:
    """Class and settings of the trained part, then of the frozen ones."""
    own, values = cast(DuetSettings, settings), settings.model_dump()
    found: list[tuple[type[Method], MethodSettings]] = []
    for name, fixed in ((own.trained, {}), *(FROZEN[part] for part in own.frozen)):
        chosen = method_entry(name).load()
        its = {key: values[key] for key in chosen.Settings.model_fields if key in values}
        found.append((chosen, make_settings(chosen.Settings, {**its, **fixed})))
    return found
