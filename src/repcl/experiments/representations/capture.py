"""Saves what the encoder makes of all test texts and some training texts, before and after every task."""

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from repcl.data import Example, TaskStream
from repcl.experiments.runs.result import SavedRepresentations
from repcl.experiments.runs.store import SAVED, remove_representations
from repcl.files import part_of, remove_quietly, settle
from repcl.methods import Method
from repcl.model import Embedder, Encoder, Processes
from repcl.model.readouts import SentenceReadout

PROBE_TEXTS = 10  # of each class and task


class Capture:
    """Writes the representations of one run; every file appears whole, before the checkpoint of its task.

    Several processes compute them together, and the first one writes.
    """

    def __init__(self, stream: TaskStream, folder: Path, processes: Processes) -> None:
        self.stream, self.folder, self.processes = stream, folder, processes

    def before_tasks(self, learner: Method) -> None:
        """Save what the untouched encoder makes of all texts, and what their classes and tasks are."""
        if self.processes.is_first:
            remove_representations(self.folder)
        tensors = self._representations(learner) | self._labels()
        if type(learner.encoder.readout) is not SentenceReadout:
            tensors["inputs"] = _narrow(_mean_states(learner.encoder, _test_texts(self.stream)))
        self._write(tensors, done=0)

    def after_task(self, learner: Method, losses: list[float]) -> None:
        """Save what the encoder makes of all texts now; nothing if it has not been trained yet."""
        if not learner.can_predict:
            return
        tensors = self._representations(learner)
        tensors["within_task"] = within_task(learner, self.stream, learner.tasks_learned)
        tensors["losses"] = torch.tensor(losses, dtype=torch.float32)
        self._write(tensors, done=learner.tasks_learned)

    def summary(self) -> SavedRepresentations:
        """What is there, and what it costs."""
        files = [path for path in self.folder.iterdir() if SAVED.fullmatch(path.name)]
        size = sum(path.stat().st_size for path in files)
        return SavedRepresentations(folder=self.folder.name, files=len(files), bytes=size)

    def _representations(self, learner: Method) -> dict[str, Tensor]:
        texts = {"test": _test_texts(self.stream), "probe": [text for _, text in probe_texts(self.stream)]}
        represent = learner.encoder.represent
        return {name: _narrow(learner.for_all(chosen, represent)) for name, chosen in texts.items()}

    def _labels(self) -> dict[str, Tensor]:
        number = {name: index for index, name in enumerate(self.stream.classes)}
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
        if not self.processes.is_first:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        final = self.folder / f"after-{done}.safetensors"
        part = part_of(final)
        try:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, part)
            settle(part)
            os.replace(part, final)
        except BaseException:
            remove_quietly(part)
            raise


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
    number = {name: index for index, name in enumerate(stream.classes)}
    answers, index_of = [], {name: index for index, name in enumerate(learner.classes)}
    for task in stream.tasks[:done]:
        columns = [index_of[name] for name in task.classes]
        if task.test:
            best = learner.scores(task.test)[:, columns].argmax(dim=1).tolist()
            answers += [number[task.classes[index]] for index in best]
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
