"""IDBR (Huang et al., 2021): generic and task-specific features, held near what they were before the task."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from repcl.data import Batch, Task
from repcl.methods.base import Method
from repcl.methods.idbr.halves import Frame, in_two_parts, middle_cut, random_cut
from repcl.methods.idbr.head import DisentangledHead, Reading
from repcl.methods.idbr.replay import SparseReplay, Step
from repcl.methods.search_ranges import Dimension, Range
from repcl.methods.settings import MemorySettings, TrainingSettings
from repcl.model import Merge, lowest_row
from repcl.training import LossTerms, ParameterGroup, Stage, run_stage


class IDBRSettings(TrainingSettings, MemorySettings):
    """Settings of IDBR; the defaults are those of the authors' code, periods counted in examples."""

    batch_size: int = Field(8, ge=1, description="texts per optimization step")
    learning_rate: float = Field(3e-5, gt=0, description="learning rate of the encoder")
    head_learning_rate: float = Field(
        3e-5, gt=0, description="learning rate of every other part but the task scores"
    )
    task_learning_rate: float = Field(
        5e-4, gt=0, description="learning rate of the scores that tell tasks apart"
    )
    warmup_epochs: float = Field(
        2.5, ge=0, description="epochs in which the learning rates rise from zero, at most a quarter of all"
    )
    warmup_examples: int = Field(8000, ge=0, description="examples after which the warmup ends at the latest")
    clip_norm: float = Field(1e6, gt=0, description="largest norm of the gradient; in effect none")
    adam_epsilon: float = Field(1e-6, gt=0, description="epsilon of AdamW, which here decays biases, too")
    feature_size: int = Field(128, ge=1, description="width of the generic and of the task-specific features")
    representation: Literal["task", "cls"] = Field(
        "task", description="what is read: what the input kind needs, or the first token's state"
    )
    order_weight: float = Field(
        1.0, ge=0, description="weight of telling whether halves are swapped; 0 leaves it out"
    )
    task_weight: float = Field(1.0, ge=0, description="weight of telling tasks apart, in replay")
    generic_weight: float = Field(0.5, ge=0, description="λ_g, weight of keeping the generic features")
    specific_weight: float = Field(0.3, ge=0, description="λ_s, weight of keeping the task-specific features")
    retention: float = Field(0.5, ge=0, description="multiplies both λ on new examples")
    replay_retention: float = Field(5.0, ge=0, description="multiplies both λ in replay")
    replay_every: int = Field(80, ge=1, description="new examples from one replay to the next")
    replay_per_task: int = Field(8, ge=1, description="exemplars of each old task in a replay")
    reserved: bool = Field(
        False, description="softmax over all classes of the stream from the start, not just those seen so far"
    )

    search: ClassVar[Mapping[str, Dimension]] = {
        **TrainingSettings.search,
        "task_learning_rate": Range(1e-4, 5e-3, is_log=True),
        "generic_weight": Range(0.0, 1.0),
        "specific_weight": Range(0.0, 1.0),
        "replay_retention": Range(0.5, 10.0, is_log=True),
    }


class IDBR(Method):
    """Sparse replay, and retention of both parts of the representation on new and old texts."""

    Settings: ClassVar[type[IDBRSettings]] = IDBRSettings
    settings: IDBRSettings
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "no-order": {"order_weight": 0.0},
        "no-task": {"task_weight": 0.0},
        "no-retention": {"generic_weight": 0.0, "specific_weight": 0.0},
        "regularization": {"order_weight": 0.0, "task_weight": 0.0, "specific_weight": 0.5},
        "cls": {"representation": "cls"},
    }
    # a merged class belongs to the earliest task of its parts
    class_rows: ClassVar[Mapping[str, Merge]] = {"class_tasks": lowest_row}
    head: DisentangledHead
    class_tasks: Tensor  # (classes,) the task that each class came with

    def build_parts(self) -> None:
        """The head that splits representations, and the task of each class."""
        settings, encoder = self.settings, self.encoder
        size = encoder.representation_size if settings.representation == "task" else encoder.hidden_size
        self.head = DisentangledHead(size, settings.feature_size).to(encoder.device)
        self.register_buffer("class_tasks", torch.zeros(0, dtype=torch.int64))
        before, after = encoder.frame
        pad = encoder.pad_id
        self.frame = Frame(len(before), len(after), separator=after[0], pad=pad, longest=encoder.max_length)

    def learn_task(self, task: Task) -> None:
        """Note the old features of all that will be seen, learn with sparse replay, choose exemplars."""
        settings = self.settings
        self._grow()
        examples = [*task.train, *self.memory]
        old = self.for_all(examples, self.features) if self.tasks_learned > 0 else None
        texts = self.batches(examples, settings.batch_size)
        steps = SparseReplay(
            [len(row.ids) for row in texts.rows[: len(task.train)]],
            self._exemplars_by_task(first=len(task.train)),
            batch_size=settings.batch_size,
            every=settings.replay_every,
            per_task=settings.replay_per_task,
            generator=self.generator,
        )

        def losses(step: Step) -> LossTerms:
            batch = texts.take(step.numbers)
            targets = old[step.numbers].to(batch.ids.device) if old is not None else None
            return self.terms(self.read(batch), batch.labels, targets, is_replay=step.is_replay)

        stage = settings.stage(settings.initial_epochs)
        latest = min(settings.initial_epochs / 4, settings.warmup_examples / settings.batch_size / len(steps))
        stage = replace(stage, warmup_epochs=min(stage.warmup_epochs, latest), epsilon=settings.adam_epsilon)
        run_stage(self, Stage.INITIAL_LEARNING, steps, losses, stage, groups=self.groups())
        self.remember(task)

    def groups(self) -> list[ParameterGroup]:
        """Encoder, task scores and all other parts, each with its rate; everything is decayed."""
        settings, head = self.settings, self.head
        others = (head.generic, head.specific, head.output, head.order)
        rates: Mapping[tuple[nn.Module, ...], float] = {
            (self.encoder,): settings.learning_rate,
            others: settings.head_learning_rate,
            (head.task,): settings.task_learning_rate,
        }
        return [ParameterGroup(parts, rate, decays_everything=True) for parts, rate in rates.items()]

    def terms(
        self, reading: Reading, labels: Tensor, old_features: Tensor | None, *, is_replay: bool
    ) -> LossTerms:
        """L = L_cls + L_nsp + 0.5 L_reg, or in replay L_cls + L_nsp + L_task + 5 L_reg.

        Args:
            reading: of n texts in order and, if asked for, of the same with their halves swapped.
            labels: (n,) classes.
            old_features: (n, 2 · width) as they were before the task; none in the first task.
            is_replay: whether exemplars are among the texts.
        """
        settings, size = self.settings, len(labels)
        copies = len(reading.class_scores) // size
        terms = {"ce": cross_entropy(reading.class_scores, labels.repeat(copies))}
        if copies == 2:
            is_swapped = torch.arange(2, device=labels.device).repeat_interleave(size)
            terms["order"] = settings.order_weight * cross_entropy(reading.order_scores, is_swapped)
        if old_features is None:
            return terms
        old_generic, old_specific = old_features.chunk(2, dim=1)
        held = settings.specific_weight * mse_loss(reading.specific[:size], old_specific)
        held = held + settings.generic_weight * mse_loss(reading.generic[:size], old_generic)
        terms["retention"] = (settings.replay_retention if is_replay else settings.retention) * held
        if is_replay:
            tasks = self.class_tasks.to(labels.device)[labels].repeat(copies)
            scores = reading.task_scores[:, : self.tasks_learned + 1]
            terms["task"] = settings.task_weight * cross_entropy(scores, tasks)
        return terms

    def read(self, batch: Batch) -> Reading:
        """Read texts cut at random and, below them, cut elsewhere with their halves swapped."""
        copies = [self._represent(batch, self._random_cuts(batch))]
        if self.settings.order_weight > 0:
            copies.append(self._represent(batch, self._random_cuts(batch), is_swapped=True))
        return self.head.read(torch.cat(copies))

    def exemplar_features(self, batch: Batch) -> Tensor:
        """Representations of texts cut in the middle."""
        return self._represent(batch, [middle_cut(*inside) for inside in self.frame.inside(batch)])

    def features(self, batch: Batch) -> Tensor:
        """Generic and specific features of texts cut in the middle, (batch, 2 · width)."""
        return self.head.features(self.exemplar_features(batch))

    def class_scores(self, batch: Batch) -> Tensor:
        """Scores of all seen classes, (batch, seen classes); order and task are for learning only."""
        scores: Tensor = self.head(self.exemplar_features(batch))
        return scores[:, : len(self.classes)]

    def _represent(self, batch: Batch, cuts: Sequence[int], *, is_swapped: bool = False) -> Tensor:
        layout, segments = in_two_parts(batch, cuts, self.frame, is_swapped=is_swapped)
        states: Tensor = self.encoder(layout, segments=segments)
        return (
            states[:, 0]
            if self.settings.representation == "cls"
            else self.encoder.readout.pool(states, layout)
        )

    def _random_cuts(self, batch: Batch) -> list[int]:
        return [random_cut(*inside, self.generator) for inside in self.frame.inside(batch)]

    def _grow(self) -> None:
        """Rows for new classes and for one more task."""
        reserved = self.expected_classes if self.settings.reserved else 0
        self.head.output.grow_to(max(len(self.classes), reserved))
        self.head.task.grow_to(self.tasks_learned + 1)
        new = len(self.classes) - len(self.class_tasks)
        self.class_tasks = torch.cat(
            [self.class_tasks, self.class_tasks.new_full((new,), self.tasks_learned)]
        )

    def _exemplars_by_task(self, *, first: int) -> list[list[int]]:
        """Numbers of the exemplars of each old task, counted from `first`."""
        tasks = dict(zip(self.classes, self.class_tasks.tolist(), strict=True))
        numbers: dict[int, list[int]] = {}
        for number, example in enumerate(self.memory, start=first):
            numbers.setdefault(tasks[example.label], []).append(number)
        return list(numbers.values())
