"""`Method`: the contract of every way to learn tasks one after another, and what all of them share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from repcl.data import Batch, Batches, Example, InputKind, Task
from repcl.data.batches import balanced_draw
from repcl.errors import InvalidData, InvalidSetting
from repcl.memory import ExemplarMemory, nearest_to_centers
from repcl.memory.selection import Features
from repcl.methods.settings import (
    ClassifierSettings,
    MemorySettings,
    MethodSettings,
    ReplaySettings,
    TrainingSettings,
    with_speed,
)
from repcl.model import READOUTS, ClassifierHead, Encoder, Processes, Readout, RowOwner, only_rows
from repcl.training import LossTerms, Observer, Stage

EVALUATION_BATCH = 64
BEFORE_THE_FIRST_TASK = 2**32 - 1  # the step of `seeded` at which first weights are drawn


class Method(RowOwner, ABC):
    """A way to learn tasks one after another. Subclasses say how; everything else is shared.

    Args:
        encoder: the pretrained encoder, which the method owns from now on.
        settings: an instance of the class's `Settings`.
        seed: decides every random draw, together with the number of tasks learned.
        expected_classes: how many classes the stream will have, used by the setting `reserved` only.
    """

    Settings: ClassVar[type[MethodSettings]]
    kinds: ClassVar[tuple[InputKind, ...]] = ("sentence", "relation", "event")
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Named settings that make another row of a table, as in `repcl@no-xmlm`."""
    keeps_everything: ClassVar[bool] = False
    """Whether the memory is unbounded, as for the upper bound `joint`."""
    takes_back_exactly: ClassVar[bool] = False
    """Whether `take_back` leaves no trace of what was learned."""
    takes_several_labels: ClassVar[bool] = False
    """Whether a text may have several labels (the setting `multilabel`)."""
    encoder_path: ClassVar[str] = "encoder"
    """Where among the parts the encoder stands whose weights change, if any do."""

    settings: MethodSettings
    head: ClassifierHead

    def __init__(
        self, encoder: Encoder, settings: MethodSettings, *, seed: int = 0, expected_classes: int = 0
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.settings = settings
        self.seed = seed
        self.expected_classes = expected_classes
        self.classes: list[str] = []
        self.tasks_learned = 0
        self.observer = Observer()
        self.generator = torch.Generator()
        self._shown: list[Example] | None = None
        self.memory = ExemplarMemory(0)
        if isinstance(settings, TrainingSettings):
            encoder.freeze_lower(settings.frozen_layers or 0.0)
        if isinstance(settings, MemorySettings):
            self.memory = ExemplarMemory(settings.memory_per_class, settings.memory_total)
        if isinstance(settings, ClassifierSettings):
            self.head = self.new_head(settings)
        self.build_parts()

    @classmethod
    def settings_class(cls, values: Mapping[str, Any]) -> type[MethodSettings]:  # noqa: ARG003
        """The class of the settings that these values are of; a method that is made of others has several."""
        return cls.Settings

    @classmethod
    def known_settings(cls, values: Mapping[str, Any]) -> Collection[str]:
        """The names of settings that may stand beside these values."""
        return cls.settings_class(values).model_fields

    @classmethod
    def parts_of(cls, values: Mapping[str, Any]) -> tuple[str, ...]:  # noqa: ARG003 (for subclasses)
        """Names of the methods that this one is made of, with these settings; presets of theirs count."""
        return ()

    @classmethod
    def for_settings(cls, settings: MethodSettings) -> type["Method"]:  # noqa: ARG003 (for subclasses)
        """The class that is built with these settings: this one, unless a method has several."""
        return cls

    @classmethod
    def resolved(cls, settings: MethodSettings, kind: InputKind) -> MethodSettings:
        """The settings with everything decided that they left open for this input kind."""
        return with_speed(settings, kind) if isinstance(settings, TrainingSettings) else settings

    @classmethod
    def readout(cls, settings: MethodSettings, kind: InputKind) -> Readout:  # noqa: ARG003 (for subclasses)
        """How the encoder is read."""
        return READOUTS[kind]()

    def build_parts(self) -> None:
        """Add the parts and buffers that a method has beyond encoder and head, and draw their weights."""

    @abstractmethod
    def learn_task(self, task: Task) -> None:
        """Learn a task whose classes are already in `self.classes`; reads like the paper's algorithm box."""

    def class_scores(self, batch: Batch) -> Tensor:
        """Scores of all seen classes, (batch, seen classes); the highest is predicted."""
        scores: Tensor = self.head(self.encoder.represent(batch))
        return scores[:, : len(self.classes)]

    def exported_solution(self) -> dict[str, Tensor]:
        """Derived tensors that an export is handed with every question; with any, it serves all revisions."""
        return {}

    def exported_answers(
        self,
        batch: Batch,
        class_sizes: Tensor,  # noqa: ARG002 (for learners that share an export)
        solution: Sequence[Tensor],  # noqa: ARG002
    ) -> tuple[Tensor, ...]:
        """What an export computes: its operations are written down as they are done here.

        Args:
            batch: the texts.
            class_sizes: how many texts each class was learned from, where that is counted.
            solution: the tensors of `exported_solution`.

        Returns:
            Scores of all seen classes and, from learners that share an export, representations on the grid.
        """
        return (self.class_scores(batch),)

    def exemplar_features(self, batch: Batch) -> Tensor:
        """What exemplars are chosen by, (batch, size)."""
        return self.head.features(self.encoder.represent(batch))

    def candidate_features(self, examples: Sequence[Example]) -> Tensor:
        """The same for all examples that exemplars are chosen from, (examples, size), on the CPU."""
        return self.for_all(examples, self.exemplar_features)

    def choose(self, features: Features, count: int) -> list[int]:
        """Which examples of a class to keep, by their features, the most telling first."""
        return nearest_to_centers(features, count)

    @property
    def processes(self) -> Processes:
        """The processes that learn together."""
        return self.encoder.processes

    @property
    def can_predict(self) -> bool:
        """Whether the method has an answer after the tasks learned so far."""
        return self.tasks_learned > 0

    # ---- what users call ------------------------------------------------------------------------

    def learn(self, task: Task, *, more_follow: bool = False) -> None:
        """Learn a task: its unseen classes are new, its other classes get more examples.

        Args:
            task: what to learn.
            more_follow: whether more tasks follow; only `joint` cares, which then waits for the end.
        """
        if not task.train:
            raise InvalidData("A task needs at least one training example, found none.")
        self.more_follow = more_follow
        with seeded(
            self.seed, self.tasks_learned, self.encoder.device, draw=self.settings.other_draw
        ) as self.generator:
            known = set(self.classes)
            self.classes += [name for name in task.classes if name not in known]
            self._shown = [*task.train, *self.memory]
            with self.encoder.kept_states(self._shown):
                self.learn_task(task)
            self._shown = None
        self.tasks_learned += 1

    def scores(self, examples: Sequence[Example]) -> Tensor:
        """Scores of all seen classes for each example, (examples, seen classes), on the CPU."""
        return self.for_all(examples, self.class_scores)

    def predict(self, examples: Sequence[Example]) -> list[str]:
        """The most likely class of each example."""
        return (
            [self.classes[best] for best in self.scores(examples).argmax(dim=1).tolist()] if examples else []
        )

    def statistics_bytes(self) -> int:
        """Bytes kept that were computed from old data, beyond exemplars and trained weights."""
        buffers = self.state_dict().keys() - {name for name, _ in self.named_parameters()}
        return sum(self.get_buffer(name).nbytes for name in buffers if not is_of_encoder(name))

    def resume(self, classes: Sequence[str], tasks_learned: int) -> None:
        """Go on with classes that were learned before; weights and exemplars follow."""
        self.classes, self.tasks_learned = list(classes), tasks_learned

    @property
    def embeddings_read(self) -> int:
        """How many embeddings were read from a folder that an earlier run had filled, instead of made."""
        return 0

    def check_loaded(self) -> None:
        """Raise `InvalidData` where loaded values contradict each other; their shapes were checked before."""

    def class_sizes(self) -> dict[str, int]:
        """How many examples each class was learned from, where that is counted."""
        return {}

    def take_back(self, examples: Sequence[Example]) -> None:
        """Drop examples, each with the label it was learned with, from all that is kept.

        Weights that they helped to train stay. `learn` or `regroup_classes` has to follow before anything
        is asked; a class that has no example left stays until it is left out there.
        """
        self.memory.drop(examples)

    @property
    def many_rows(self) -> Sequence[str]:
        """Tensors that get more rows with every update and are saved in pieces."""
        return ()

    def derived(self) -> dict[str, Tensor]:
        """What can be computed again from the rest of the state; it is saved to save time only."""
        return {}

    def derived_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of what `take_derived` takes over; nothing else is read from a file."""
        return {}

    def take_derived(self, found: Mapping[str, Tensor]) -> None:
        """Take over what was computed before; whatever is missing or does not fit is computed again."""

    def forget_class(self, name: str) -> None:
        """Drop a class and all that is held of it; weights that its texts helped to train stay."""
        self.regroup_classes({other: [other] for other in self.classes if other != name})

    def regroup_classes(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Keep only these classes, in this order, each made of one or several old ones."""
        index_of = {name: index for index, name in enumerate(self.classes)}
        indices = [[index_of[name] for name in names] for names in groups.values()]
        if indices != [[index] for index in range(len(self.classes))]:
            self._check_rows_of_classes()
            for part in self.row_owners():
                part.regroup_rows(indices, len(self.classes))
        self.memory = self.memory.regrouped(groups)
        self.classes = list(groups)

    # ---- what methods share ---------------------------------------------------------------------

    def occurring_rows(self, *, others_learn: bool = False) -> AbstractContextManager[None]:
        """Within it, only word embeddings of the task and the memory take part in training.

        Args:
            others_learn: whether all others are trained as well, as outputs.
        """
        if self._shown is None:  # a stage by itself, outside of `learn`
            ids = torch.arange(len(self.encoder.word_embeddings.weight))
        else:
            ids = self.encoder.occurring_ids(self._shown)
        return only_rows(self.encoder, ids, others_learn=others_learn)

    def row_owners(self) -> list[RowOwner]:
        """The parts, this method among them, that say what the rows of their tensors belong to."""
        return [part for part in self.modules() if isinstance(part, RowOwner)]

    def batches(self, examples: Sequence[Example], batch_size: int) -> Batches:
        """Shuffled training batches of examples; each iteration is one epoch."""
        return self._batches(examples, batch_size, self.generator)

    def memory_batches(self, batch_size: int) -> Batches:
        """Shuffled training batches of exemplars, in each epoch at most as many as `replay_budget` says."""
        return self._batches(list(self.memory), batch_size, self.generator, most=self.replay_budget)

    def drawn_memory(self) -> list[Example]:
        """The exemplars of one epoch: all, or as many of every class as `replay_budget` leaves room for."""
        exemplars = list(self.memory)
        if self.replay_budget is None or self.replay_budget >= len(exemplars):
            return exemplars
        labels = [example.label for example in exemplars]
        return [exemplars[at] for at in balanced_draw(labels, self.replay_budget, self.generator)]

    @property
    def replay_budget(self) -> int | None:
        """How many exemplars an epoch of replay shows; None for all."""
        return self.settings.replay_budget if isinstance(self.settings, ReplaySettings) else None

    @torch.no_grad()
    def for_all(self, examples: Sequence[Example], function: Callable[[Batch], Tensor]) -> Tensor:
        """A function's values for every example in the given order, in evaluation mode, on the CPU."""
        was_training = self.training
        self.eval()
        values: Tensor | None = None
        for batch in self._batches(examples, EVALUATION_BATCH, None):
            result = function(batch).cpu()
            if values is None:
                values = result.new_empty((len(examples), *result.shape[1:]))
            values[batch.positions.cpu()] = result
        self.train(was_training)
        return self.processes.of_the_first(values) if values is not None else torch.empty(0)

    def remember(self, task: Task) -> None:
        """Choose exemplars for the task's classes among their new examples and the ones already kept."""
        with self.observer.stage(Stage.MEMORY_UPDATE):
            budget = self.memory.budget(len(self.classes))
            for name in task.classes:
                fresh = (example for example in task.train if example.label == name)
                candidates = list(dict.fromkeys([*self.memory.of(name), *fresh]))
                features = self.candidate_features(candidates).numpy()
                chosen = self.choose(features, budget) if candidates else []
                self.memory.keep(name, [candidates[index] for index in chosen])
            self.memory.shrink(budget)

    def new_head(self, settings: ClassifierSettings) -> ClassifierHead:
        """A classifier for this encoder, without classes yet."""
        return ClassifierHead(
            self.encoder.representation_size,
            self.encoder.hidden_size,
            has_hidden_layer=self.encoder.readout.head_has_hidden_layer,
            dropout=settings.head_dropout,
        ).to(self.encoder.device)

    def grow_head(self) -> None:
        """Give every seen class a row, and with `reserved` every class that will ever come."""
        is_reserved = isinstance(self.settings, ClassifierSettings) and self.settings.reserved
        self.head.output.grow_to(max(len(self.classes), self.expected_classes if is_reserved else 0))

    def classify(self, batch: Batch) -> LossTerms:
        """Plain cross-entropy over all classes that the head has."""
        return {"ce": cross_entropy(self.head(self.encoder.represent(batch)), batch.labels)}

    def _batches(
        self,
        examples: Sequence[Example],
        batch_size: int,
        generator: torch.Generator | None,
        *,
        most: int | None = None,
    ) -> Batches:
        index = {name: at for at, name in enumerate(self.classes)}
        return Batches(
            self.encoder.tokenize(examples),
            [index.get(example.label, -1) for example in examples],
            batch_size=batch_size,
            pad_id=self.encoder.pad_id,
            device=self.encoder.device,
            generator=generator,
            most=most,
        )

    def _check_rows_of_classes(self) -> None:
        """Refuse to merge or remove classes where something kept of them cannot be taken apart."""
        for path, part in self.named_modules():
            declared = part.class_rows if isinstance(part, RowOwner) else {}
            for name, _ in part.named_buffers(path, recurse=False):
                if not is_of_encoder(name) and name.rpartition(".")[2] not in declared:
                    raise InvalidSetting(
                        f"{type(self).__name__} keeps {name!r}, of which no row belongs to one class, so "
                        "classes cannot be merged or removed: teach a new classifier instead."
                    )


def is_of_encoder(name: str) -> bool:
    """Whether a tensor of this name is a weight of an encoder."""
    return "encoder" in name.split(".")[:-1]


@contextmanager
def seeded(seed: int, step: int, device: torch.device, *, draw: int = 0) -> Iterator[torch.Generator]:
    """Random draws that depend on (seed, step, draw) only and leave the global generators untouched.

    Dropout and new weights draw from torch's own generator, which is forked and seeded here; the order of
    examples draws from the generator that is handed out.
    """
    numbers = [abs(seed), int(seed < 0), step, *([draw] if draw else [])]
    for_torch, for_data = np.random.SeedSequence(numbers).generate_state(2)
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(int(for_torch))
        yield torch.Generator().manual_seed(int(for_data))
