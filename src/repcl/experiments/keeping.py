"""What a run keeps for its analysis: representations after every task, or weights after first and last."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from repcl.data import Example, TaskStream
from repcl.errors import UnknownName
from repcl.experiments.result import KEEPS, Keep, KeptSummary
from repcl.methods import Method, save_method
from repcl.model import Embedder, Encoder
from repcl.model.processes import processes
from repcl.model.readouts import SentenceReadout
from repcl.training import Observer, Stage

PROBE_TEXTS = 10  # of each class and task


class Keeper:
    """Writes what one run keeps; every file appears as a whole, before the checkpoint of its task.

    Several processes compute it together, and the first one writes.
    """

    def __init__(self, keep: Keep, stream: TaskStream, folder: Path) -> None:
        self.keep, self.stream, self.folder = keep, stream, folder / keep

    def before_tasks(self, learner: Method) -> None:
        """Keep what the untouched encoder makes of all texts, and what their classes and tasks are."""
        if self.keep != "representations":
            return
        if processes().is_first:
            shutil.rmtree(self.folder, ignore_errors=True)
        tensors = self._representations(learner) | self._labels()
        if type(learner.encoder.readout) is not SentenceReadout:
            tensors["inputs"] = _narrow(_mean_states(learner.encoder, _test_texts(self.stream)))
        self._write(tensors, done=0)

    def after_task(self, learner: Method, name: str, losses: list[float]) -> None:
        """Keep what the encoder makes of all texts now; nothing if it has not been trained yet."""
        done, tasks = learner.tasks_learned, len(self.stream.tasks)
        if self.keep == "none" or not learner.can_predict:
            return
        if self.keep == "weights":
            if done in (1, tasks):
                self._write_weights(learner, name, done)
            return
        tensors = self._representations(learner)
        tensors["within_task"] = within_task(learner, self.stream, done)
        tensors["losses"] = torch.tensor(losses, dtype=torch.float32)
        self._write(tensors, done=done)

    def summary(self) -> KeptSummary | None:
        """What is there, and what it costs."""
        if self.keep == "none":
            return None
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        return KeptSummary(what=self.keep, folder=self.folder.name, files=len(files), bytes=size)

    def _representations(self, learner: Method) -> dict[str, Tensor]:
        texts = {"test": _test_texts(self.stream), "probe": [text for _, text in probe_texts(self.stream)]}
        represent = learner.encoder.represent
        return {name: _narrow(learner.for_all(chosen, represent)) for name, chosen in texts.items()}

    def _labels(self) -> dict[str, Tensor]:
        number = {name: place for place, name in enumerate(self.stream.classes)}
        probes = probe_texts(self.stream)
        tests = [(task, text) for task, part in enumerate(self.stream.tasks) for text in part.test]
        return {
            f"{kind}_{what}": torch.tensor(values, dtype=torch.int16)
            for kind, texts in (("test", tests), ("probe", probes))
            for what, values in (
                ("labels", [number[text.label] for _, text in texts]),
                ("tasks", [task for task, _ in texts]),
            )
        }

    def _write(self, tensors: Mapping[str, Tensor], *, done: int) -> None:
        if not processes().is_first:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        part, final = self.folder / f"after-{done}.part", self.folder / f"after-{done}.safetensors"
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, part)
        os.replace(part, final)

    def _write_weights(self, learner: Method, name: str, done: int) -> None:
        if not processes().is_first:
            return
        part, final = self.folder / f"after-{done}.part", self.folder / f"after-{done}"
        for old in (part, final):
            shutil.rmtree(old, ignore_errors=True)
        save_method(learner, name, part)
        os.rename(part, final)


class LossRecord(Observer):
    """The loss of each step of initial learning; everything is passed on."""

    def __init__(self, next_observer: Observer) -> None:
        self.next = next_observer
        self.losses: list[float] = []
        self._is_initial = False

    def stage_begins(self, name: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
        """Pass it on."""
        self._is_initial = name is Stage.INITIAL_LEARNING
        self.next.stage_begins(name, epochs=epochs, steps_per_epoch=steps_per_epoch)

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        """Note the cross-entropy, or the sum where a method has none."""
        if self._is_initial:
            self.losses.append(float(terms["ce"] if "ce" in terms else sum(terms.values())))
        self.next.step_ends(terms)

    def stage_ends(self, name: Stage) -> None:
        """Pass it on."""
        self.next.stage_ends(name)


def known_keep(name: str) -> Keep:
    """What to keep, by its name."""
    for keep in KEEPS:
        if keep == name:
            return keep
    raise UnknownName("thing to keep", name, KEEPS)


def remove_kept(folder: Path) -> None:
    """Drop what an earlier run kept."""
    for keep in KEEPS:
        with suppress(FileNotFoundError):
            shutil.rmtree(folder / keep)


def probe_texts(stream: TaskStream) -> list[tuple[int, Example]]:
    """The first training texts of each class of each task, with the task's number."""
    chosen = []
    for number, task in enumerate(stream.tasks):
        for label in task.classes:
            members = [example for example in task.train if example.label == label]
            chosen += [(number, example) for example in members[:PROBE_TEXTS]]
    return chosen


def within_task(learner: Method, stream: TaskStream, done: int) -> Tensor:
    """The best class of each test text among those of its own task; -1 where that was not learned yet."""
    number = {name: place for place, name in enumerate(stream.classes)}
    answers = []
    for task in stream.tasks[:done]:
        columns = [learner.classes.index(name) for name in task.classes]
        if task.test:
            best = learner.scores(task.test)[:, columns].argmax(dim=1).tolist()
            answers += [number[task.classes[place]] for place in best]
    later = sum(len(task.test) for task in stream.tasks[done:])
    return torch.tensor([*answers, *[-1] * later], dtype=torch.int16)


def _mean_states(encoder: Encoder, texts: list[Example]) -> Tensor:
    """The mean last-layer state of each plain text, without markers: the X of I(X;Z)."""
    plain = Encoder(
        encoder.backbone,
        encoder.tokenizer,
        SentenceReadout(),
        name=encoder.name,
        processes=encoder.processes,
    )
    return Embedder(plain)(texts)


def _test_texts(stream: TaskStream) -> list[Example]:
    return [example for task in stream.tasks for example in task.test]


def _narrow(rows: Tensor) -> Tensor:
    """Half the bytes; what is lost is far below what any analysis can see."""
    limit = torch.finfo(torch.float16).max
    return rows.clamp(-limit, limit).half()
