"""Collected texts in groups of alike ones, each with the model's best guess."""

import asyncio
from collections.abc import Sequence
from functools import partial

import numpy as np

from repcl.classifier.discovery import Group, grouped
from repcl.classifier.store.collected import CollectedText
from repcl.classifier.vectors import Labels, Vectors, embed, kept
from repcl.data import Example
from repcl.methods.frozen.method import FrozenMethod
from repcl.serving.batching import TEXTS_PER_TURN, Answerer
from repcl.serving.bodies import CollectedBody, GroupBody
from repcl.serving.collecting import Collector
from repcl.serving.model import Answer, Question, ServedModel


class Review:
    """Groups collected texts; the same texts and the same revision are not grouped twice."""

    def __init__(self, collector: Collector, answerer: Answerer) -> None:
        self.collector = collector
        self.answerer = answerer
        self._found: tuple[tuple[int, int], list[GroupBody]] | None = None
        self._grouping: asyncio.Lock | None = None

    async def groups(self) -> list[GroupBody]:
        """The groups, the largest first."""
        self._grouping = self._grouping or asyncio.Lock()
        async with self._grouping:  # who comes second finds it done
            key = (self.answerer.current.served.number, self.collector.version)
            if self._found is None or self._found[0] != key:
                self._found = (key, await self._grouped(self.collector.texts()))
            return self._found[1]

    async def _grouped(self, texts: Sequence[CollectedText]) -> list[GroupBody]:
        by_example = {one.example(): one for one in texts}
        examples = list(by_example)
        if not examples:
            return []
        model, answers = await self.answerer.ask(Question(examples, top=1))
        guesses = dict(zip(examples, answers, strict=True))
        groups = await self._alike(model, examples)
        return [
            GroupBody(texts=[_body(by_example[one], guesses[one]) for one in group.examples])
            for group in groups
        ]

    async def _alike(self, model: ServedModel, examples: Sequence[Example]) -> Sequence[Group]:
        """Vectors are made by the computing thread, a turn's worth at a time; grouping asks no model."""
        parts = [
            await self.answerer.run(partial(embed, model.state, examples[start : start + TEXTS_PER_TURN]))
            for start in range(0, len(examples), TEXTS_PER_TURN)
        ]
        known = await self._known(model)
        groups, _ = await asyncio.to_thread(
            grouped, model.state, examples, np.concatenate(parts), known=known
        )
        return groups

    async def _known(self, model: ServedModel) -> tuple[Vectors, Labels]:
        """Vectors and classes of learned texts."""
        method = model.state.method
        if isinstance(method, FrozenMethod) and method.keeps_rows:
            return kept(model.state)  # they are there
        await self.answerer.embed_kept(model)
        column = {name: index for index, name in enumerate(method.classes)}
        labels = np.array([column[one.label] for one in model.kept], dtype=np.int64)
        return model.vectors_of_kept(), labels


def _body(collected: CollectedText, answer: Answer) -> CollectedBody:
    best = answer["top"][0]["label"] if answer["top"] else None
    return CollectedBody(
        id=collected.id,
        text=collected.text,
        head=collected.head,
        tail=collected.tail,
        trigger=collected.trigger,
        label=best,
        confidence=answer["confidence"],
        when=collected.when,
    )
