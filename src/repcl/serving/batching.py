"""One thread computes: requests that arrive together are answered together, others wait for its next turn."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from repcl.serving.metrics import Metrics
from repcl.serving.model import Answer, CurrentModel, Question, ServedModel

TEXTS_PER_TURN = 64


@dataclass(frozen=True)
class _Waiting:
    """A question, whom to ask (the revision in use if None), and where the answer goes."""

    question: Question
    model: ServedModel | None
    future: "asyncio.Future[Any]"


@dataclass(frozen=True)
class _Work:
    """Something else that only the computing thread may do."""

    do: Callable[[], Any]
    future: "asyncio.Future[Any]"


class Answerer:
    """Answers questions from any number of requests with one thread.

    Args:
        current: whom to ask.
        metrics: hears how much is computed at a time.
    """

    def __init__(self, current: CurrentModel, metrics: Metrics) -> None:
        self.current = current
        self.metrics = metrics
        self._waiting: deque[_Waiting | _Work] = deque()
        self._wake = threading.Condition()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="answerer", daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what waits, then end."""
        with self._wake:
            self._is_ending = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def length(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    async def ask(self, question: Question) -> tuple[ServedModel, list[Answer]]:
        """Answers from one revision; a long question takes several turns, so that others get theirs."""
        chosen = await self._with_vectors() if question.nearest else None
        parts = _parts(question)
        model, answers = await self._turn(parts[0], chosen)
        for part in parts[1:]:
            answers += (await self._turn(part, model))[1]
        return model, answers

    async def run(self, do: Callable[[], Any]) -> Any:
        """Do something on the computing thread."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(_Work(do, future))
        return await future

    async def _turn(self, question: Question, model: ServedModel | None) -> tuple[ServedModel, list[Answer]]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(_Waiting(question, model, future))
        found: tuple[ServedModel, list[Answer]] = await future
        return found

    async def embed_kept(self, model: ServedModel) -> None:
        """Let a model's kept texts have vectors, made a turn's worth at a time."""
        while not await self.run(lambda: model.embed_kept(TEXTS_PER_TURN)):
            pass

    async def _with_vectors(self) -> ServedModel:
        """The revision in use, once its kept texts have vectors."""
        model = self.current.served
        await self.embed_kept(model)
        return model

    def _put(self, item: _Waiting | _Work) -> None:
        with self._wake:
            self._waiting.append(item)
            self._wake.notify()

    # ---- the computing thread -------------------------------------------------------------------

    def _run(self) -> None:
        while turn := self._take():
            if isinstance(turn[0], _Work):
                _give([(turn[0].future, _tried(turn[0].do))])
            else:
                self._answer([one for one in turn if isinstance(one, _Waiting)])

    def _take(self) -> list[_Waiting | _Work]:
        """What is done in one turn: other work alone, questions together; nothing at the very end."""
        with self._wake:
            while not self._waiting and not self._is_ending:
                self._wake.wait()
            turn: list[_Waiting | _Work] = []
            texts = 0
            while self._waiting and texts < TEXTS_PER_TURN:
                if isinstance(self._waiting[0], _Work):
                    return turn or [self._waiting.popleft()]
                turn.append(one := self._waiting.popleft())
                texts += len(one.question.examples) if isinstance(one, _Waiting) else 0
            return turn

    def _answer(self, turn: Sequence[_Waiting]) -> None:
        current = self.current.served
        by_model: dict[int, tuple[ServedModel, list[_Waiting]]] = {}
        for one in turn:
            if not one.future.cancelled():
                model = one.model or current
                by_model.setdefault(id(model), (model, []))[1].append(one)
        for model, group in by_model.values():
            self.metrics.count_turn(sum(len(one.question.examples) for one in group))
            _give(_answered(model, group))


def _answered(
    model: ServedModel, group: Sequence[_Waiting]
) -> "list[tuple[asyncio.Future[Any], Future[Any]]]":
    """Answers of one model to a group of questions; where they cannot be had together, one by one."""
    together = _tried(lambda: model.answers([one.question for one in group]))
    if together.exception() is None:
        answers = [_done((model, own)) for own in together.result()]
    else:
        answers = [_tried(lambda one=one: (model, model.answers([one.question])[0])) for one in group]  # type: ignore[misc]
    return list(zip([one.future for one in group], answers, strict=True))


def _parts(question: Question) -> list[Question]:
    """A question in parts of one turn each."""
    starts = range(0, max(1, len(question.examples)), TEXTS_PER_TURN)
    return [
        Question(question.examples[start : start + TEXTS_PER_TURN], question.top, question.nearest)
        for start in starts
    ]


def _done(value: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def _tried(do: Callable[[], Any]) -> "Future[Any]":
    """What a function gives, or the error that it raises."""
    future: Future[Any] = Future()
    try:
        future.set_result(do())
    except Exception as error:
        future.set_exception(error)
    return future


def _give(answers: "Sequence[tuple[asyncio.Future[Any], Future[Any]]]") -> None:
    """Bring answers to the event loop, all at once."""
    if answers:
        with suppress(RuntimeError):  # a loop that is closed has nobody waiting
            answers[0][0].get_loop().call_soon_threadsafe(_settle, answers)


def _settle(answers: "Sequence[tuple[asyncio.Future[Any], Future[Any]]]") -> None:
    for future, answer in answers:
        if future.done():
            continue
        error = answer.exception()
        if error is None:
            future.set_result(answer.result())
        else:
            future.set_exception(error)
