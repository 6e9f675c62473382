"""The one place that looks inside a method: it builds one, and writes down what happens while it learns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from repcl.data import Batch, Example, InputKind, Task
from repcl.methods import Method, build_method
from repcl.model import OccurringRows
from repcl.training import Observer
from tests.conftest import library_tokenizer, readout_of, tiny_encoder

Ids = tuple[int, ...]
State = dict[str, Tensor]
WORDS = "encoder.backbone.embeddings.word_embeddings.weight"
OTHERS = WORDS.replace("weight", "others")


def noise(values: Tensor) -> Tensor:
    """What the stand-in for dropout adds to each row."""
    return values + 0.1 * torch.cos(torch.arange(values.shape[-1]))


class FixedNoise(nn.Module):
    """Stands in for dropout without chance: in training it adds a fixed vector, so a wrong mode shows."""

    p = 0.0

    def forward(self, values: Tensor) -> Tensor:
        return noise(values) if self.training else values


def built(name: str, kind: InputKind = "sentence", *, expected_classes: int = 0, **settings: Any) -> Method:
    """A method on the tiny encoder in which every dropout is a `FixedNoise`."""
    encoder = tiny_encoder(kind, dropout=0.0, readout=readout_of(name, kind))
    method = build_method(
        name, kind, encoder=encoder, settings=settings, seed=3, expected_classes=expected_classes
    )
    for part in list(method.modules()):
        for child_name, child in part.named_children():
            if isinstance(child, nn.Dropout):
                setattr(part, child_name, FixedNoise())
    return method.eval()


@dataclass
class Shown:
    """Texts that the encoder was shown in one pass."""

    stage: int  # -1 before the first
    rows: list[Ids]  # without padding
    segments: list[Ids] | None
    can_learn: bool
    is_training: bool


@dataclass
class Step:
    """An optimizer step: gradients as they were used, after clipping."""

    stage: int
    gradients: State
    others: list[Tensor]  # what was trained and is no part of the method, as it was before the step


@dataclass(repr=False, eq=False)
class Watched(Observer):
    """What happened while a method learned a task; stages count from 0 in the order in which they began."""

    method: Method
    before: State
    stages: list[str] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    """The weights when each stage began."""
    steps: list[Step] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)

    def stage_begins(self, name: str, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        self.stages.append(str(name))
        self.states.append(copied(self.method))

    def training_stages(self) -> list[int]:
        """The stages in which steps were made."""
        return sorted({step.stage for step in self.steps})

    def steps_of(self, stage: int) -> list[Step]:
        return [step for step in self.steps if step.stage == stage]

    def trained_on(self, stage: int) -> list[list[Ids]]:
        """The texts of every pass of a stage that could learn, in order."""
        return [shown.rows for shown in self.shown if shown.stage == stage and shown.can_learn]

    def look(self, _: nn.Module, inputs: tuple[Any, ...], more: Mapping[str, Any]) -> None:
        batch: Batch = inputs[0]
        lengths = batch.mask.sum(dim=1).tolist()
        segments = more.get("segments")
        self.shown.append(
            Shown(
                len(self.stages) - 1,
                unpadded(batch.ids, lengths),
                None if segments is None else unpadded(segments, lengths),
                torch.is_grad_enabled(),
                self.method.encoder.training,
            )
        )

    def note_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        names = {id(parameter): name for name, parameter in self.method.named_parameters()}
        gradients: State = {}
        others: list[Tensor] = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) not in names:
                    others.append(parameter.detach().clone())
                elif parameter.grad is not None:
                    gradients[names[id(parameter)]] = parameter.grad.clone()
        of_all_rows(gradients, self.method.encoder.word_embeddings)
        last = self.steps[-1] if self.steps else None
        stage = len(self.stages) - 1
        if last is not None and last.stage == stage and not last.gradients.keys() & gradients.keys():
            last.gradients |= gradients  # one step made by two optimizers
        else:
            self.steps.append(Step(stage, gradients, others))


def watch(method: Method, task: Task, *, more_follow: bool = False) -> Watched:
    """Learn a task and say what happened."""
    watched = Watched(method, copied(method))
    idle, method.observer = method.observer, watched
    handles = [
        method.encoder.register_forward_pre_hook(watched.look, with_kwargs=True),
        register_optimizer_step_pre_hook(watched.note_step),
    ]
    try:
        method.learn(task, more_follow=more_follow)
    finally:
        for handle in handles:
            handle.remove()
        method.observer = idle
    return watched


def copied(method: nn.Module) -> State:
    """All weights, with the word embeddings as the whole table that they are a part of while they learn."""
    state = {name: value.detach().clone() for name, value in method.state_dict().items()}
    for table in method.modules():
        if isinstance(table, OccurringRows):
            state.pop(OTHERS, None)
            state[WORDS] = table.whole()
    return state


def of_all_rows(gradients: State, table: nn.Embedding) -> None:
    """Put gradients of word embeddings where they belong in the whole table."""
    if isinstance(table, OccurringRows) and WORDS in gradients:
        whole = torch.zeros(len(table.indices), table.embedding_dim)
        whole[table.ids] = gradients[WORDS]
        if OTHERS in gradients:
            whole[table.other_ids] = gradients.pop(OTHERS)
        gradients[WORDS] = whole


def unpadded(rows: Tensor, lengths: Sequence[int]) -> list[Ids]:
    return [tuple(row[:length]) for row, length in zip(rows.tolist(), lengths, strict=True)]


def text_ids(method: Method, example: Example) -> Ids:
    """Token ids of a text, with markers written into it where the input kind wants them."""
    text = example.text
    if example.head is not None and example.tail is not None:
        marks = [
            (example.head.start, " [E11] "),
            (example.head.end, " [E12] "),
            (example.tail.start, " [E21] "),
            (example.tail.end, " [E22] "),
        ]
        for position, marker in sorted(marks, reverse=True):
            text = text[:position] + marker + text[position:]
    return tuple(library_tokenizer(method.encoder)(text)["input_ids"])
