"""How often the guard refuses: updates that only add, and updates that do harm.

    python benchmarks/guard.py [--benchmark banking77]... [--data-dir DIR] [--rounds 1] [--texts 30] [--json]

Each benchmark is a stream of tasks for `instant` (one map of 1,000 features, so that hundreds of updates take
minutes). Between two tasks a number of updates are tried, judged and taken back, which is exact:

- harmless: the next task; a single new class of 10 or 20 texts; 15 more texts of a known class, or all spare
  texts of all known classes;
- shuffled: the next task, or more texts of all known classes, with the labels of 30 % of the texts permuted;
- harmful: texts of an old class come under the name of the class most like it, under a new name, or
  among those of a new class; or an old class is forgotten but for a tenth of its texts. Those count after
  which the test accuracy of some old class is lower by 20 points or more.

The guard sees held-out texts (5 of a class), and new texts of old classes before they are learned; or answers
with each text left out in turn: of 10 or 20 of a class, of up to twice as many of suspects (old classes that
the update touches, or that its texts get before it), and of all new ones.
Test texts decide what did harm, and nothing else.
"""

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from repcl.benchmarks import load_benchmark
from repcl.classifier.arrivals import Arrival, as_arrivals, least_usual, margins_of
from repcl.classifier.guard import compare, hold_out
from repcl.data import Example, Task
from repcl.methods import build_method

BENCHMARKS = ("banking77", "clinc150", "hwu64", "demo")
HELD_OUT = 5
LEFT_OUT = (10, 20)
SHUFFLED = 0.3
FALL = 0.2
KINDS = ("task", "one class", "more texts", "shuffled", "class down")

Texts = list[Example]


class Trial(NamedTuple):
    """An update to try: what it is, its texts, and texts that are forgotten."""

    kind: str
    texts: Texts
    forgotten: Texts


class Verdict(NamedTuple):
    """What the guard said of an update."""

    benchmark: str
    source: str
    kind: str
    is_refused: bool


class Answers(NamedTuple):
    """What texts get from a learner that has not learned them."""

    examples: Texts
    names: list[str]
    scores: Any

    @property
    def labels(self) -> list[str]:
        return [example.label for example in self.examples]

    @property
    def best(self) -> list[str]:
        return [self.names[index] for index in self.scores.argmax(axis=1)]

    def first_of_class(self, most: int, suspects: Collection[str] = ()) -> "Answers":
        """Those to the first texts of each class, then as many again of suspects."""
        even = [index for index, _ in first_of_class(self.examples, most)]
        twice = first_of_class(self.examples, 2 * most)
        more = {index for index, example in twice if example.label in suspects}.difference(even)
        indices = [*even, *sorted(more)]
        return self._replace(
            examples=[self.examples[index] for index in indices], scores=self.scores[indices]
        )

    def arrivals(self, learned: "Answers") -> list[Arrival]:
        """The texts as an update brings them, beside learned ones by the same learner."""
        columns = [learned.names.index(label) for label in learned.labels]
        least = least_usual(margins_of(learned.scores, columns).tolist())
        return as_arrivals(self.examples, self.scores, self.names, least)


class Learner:
    """`instant`, with texts embedded once, and answers with each text left out."""

    def __init__(self, store: dict[str, Tensor]) -> None:
        settings = {"maps": 1, "features": 1000}
        self.method = build_method(
            "instant", "sentence", encoder="minilm-l6", settings=settings, device="cpu"
        )
        self.store, self.bare = store, self.method.embedder
        self.method.embedder = self.embed

    def embed(self, examples: Sequence[Example]) -> Tensor:
        """Embeddings, from the store where they are known."""
        missing = {example.text: example for example in examples if example.text not in self.store}
        if missing:
            self.store.update(zip(missing, self.bare(list(missing.values())), strict=True))
        return torch.stack([self.store[example.text] for example in examples])

    def learn(self, examples: Texts) -> None:
        if examples:
            names = tuple(dict.fromkeys(example.label for example in examples))
            self.method.learn(Task(names, examples, []))

    def forget(self, examples: Texts) -> None:
        if examples:
            self.method.take_back(examples)
            left = self.method.class_sizes()
            self.method.regroup_classes({name: [name] for name in self.method.classes if left[name]})

    def answers(self, examples: Texts) -> Answers:
        """What texts get that were not learned."""
        return self.as_answers(examples, self.method.scores)

    def left_out(self, examples: Texts) -> Answers:
        """What each learned text would get, had it not been learned."""
        return self.as_answers(examples, self.method.left_out_examples)

    def as_answers(self, examples: Texts, ask: Callable[[Texts], Tensor]) -> Answers:
        names = list(self.method.classes)
        scores = ask(examples).double().numpy() if examples else np.zeros((0, len(names)))
        return Answers(examples, names, scores)


def main() -> None:
    options = read_options()
    torch.set_num_threads(1)
    verdicts: list[Verdict] = []
    for name in options.benchmark or BENCHMARKS:
        store: dict[str, Tensor] = {}
        for number in range(options.rounds):
            for is_held in (True, False):
                verdicts += Stream(name, number, options, store).judge(is_held=is_held)
        if not options.json:
            print_shares([verdict for verdict in verdicts if verdict.benchmark == name])
    if options.json:
        print(json.dumps([verdict._asdict() for verdict in verdicts]))
    elif len({verdict.benchmark for verdict in verdicts}) > 1:
        print_shares([verdict._replace(benchmark="all") for verdict in verdicts])


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="how often the guard refuses")
    parser.add_argument("--benchmark", action="append", choices=BENCHMARKS)
    parser.add_argument("--data-dir")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--texts", type=int, default=30, help="learned of each class")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


class Stream:
    """The classes of a benchmark in one round, with texts to learn, spare ones and test texts."""

    def __init__(self, name: str, number: int, options: argparse.Namespace, store: dict[str, Tensor]) -> None:
        self.name, self.store, self.random = name, store, random.Random(number)
        loaded = load_benchmark(
            name,
            data_dir=options.data_dir,
            round=number,
            max_train_per_class=2 * options.texts,
            max_test_per_class=20,
        )
        self.tasks = [list(task.classes) for task in loaded.tasks]
        given: dict[str, Texts] = defaultdict(list)
        for example in (example for task in loaded.tasks for example in task.train):
            given[example.label].append(example)
        most = {label: min(options.texts, 2 * len(own) // 3) for label, own in given.items()}
        self.learned = {label: own[: most[label]] for label, own in given.items()}
        self.spare = {label: own[most[label] :] for label, own in given.items()}
        self.test = [example for task in loaded.tasks for example in task.test]

    def judge(self, *, is_held: bool) -> Iterator[Verdict]:
        """What the guard says of the tasks of the stream, and of updates that are tried between them."""
        learner = Learner(self.store)
        known: Texts = []
        held: Texts = []
        for number, classes in enumerate(self.tasks):
            task = [example for label in classes for example in self.learned[label]]
            if number:
                for trial in self.trials(number, known, held):
                    yield from self.verdicts(learner, trial, known, held, is_held=is_held)
            train, fresh = hold_out(task, [], per_class=HELD_OUT, seed=0) if is_held else (task, [])
            learner.learn(train)
            known, held = known + train, held + fresh

    def trials(self, number: int, known: Texts, held: Texts) -> Iterator[Trial]:
        """Updates between two tasks."""
        old = [label for classes in self.tasks[:number] for label in classes]
        new = self.tasks[number]
        task = [example for label in new for example in self.learned[label]]
        spare = [example for label in old for example in self.spare[label]]
        first, second = self.random.sample(new, 2)
        more, victim, other = self.random.choice(old), *self.random.sample(old, 2)
        yield Trial("task", task, [])
        yield Trial("one class", self.learned[first][:10], [])
        yield Trial("one class", self.learned[second][:20], [])
        yield Trial("more texts", self.spare[more][:15], [])
        yield Trial("more texts", spare, [])
        yield Trial("shuffled", self.shuffled(task), [])
        yield Trial("shuffled", self.shuffled(spare), [])
        near = self.most_like(victim, old)
        yield Trial("class down", [replace(one, label=near) for one in self.spare[victim]], [])
        yield Trial("class down", [replace(one, label="again") for one in self.spare[victim]], [])
        wrong = [replace(one, label=first) for one in self.spare[other]]
        yield Trial("class down", [*self.learned[first][: len(wrong)], *wrong], [])
        if held:  # with texts left out in turn, those forgotten could not be asked
            own = [example for example in known if example.label == other]
            yield Trial("class down", self.learned[first], own[: len(own) * 9 // 10])

    def shuffled(self, examples: Texts) -> Texts:
        """Three labels in ten permuted."""
        chosen = self.random.sample(range(len(examples)), round(SHUFFLED * len(examples)))
        labels = [examples[index].label for index in chosen]
        self.random.shuffle(labels)
        found = list(examples)
        for index, label in zip(chosen, labels, strict=True):
            found[index] = replace(found[index], label=label)
        return found

    def most_like(self, name: str, others: Sequence[str]) -> str:
        """The class with the nearest mean."""
        means = {label: self.mean(label) for label in others}
        return max((label for label in others if label != name), key=lambda label: means[label] @ means[name])

    def mean(self, label: str) -> Tensor:
        rows = torch.stack([self.store[example.text] for example in self.learned[label]])
        return torch.nn.functional.normalize(rows.mean(dim=0), dim=0)

    def verdicts(
        self, learner: Learner, trial: Trial, known: Texts, held: Texts, *, is_held: bool
    ) -> Iterator[Verdict]:
        """Try an update, judge it, take it back."""
        train, fresh = hold_out(trial.texts, [], per_class=HELD_OUT, seed=0) if is_held else (trial.texts, [])
        old = {example.label for example in known}
        tested = [example for example in self.test if example.label in old]
        asked = held if is_held else sampled(known, 2 * max(LEFT_OUT))
        ask = learner.answers if is_held else learner.left_out
        before, test_before = ask(asked), learner.answers(tested)
        suspects = {example.label for example in train}.union(learner.answers(train).best)
        came = [learner.answers([example for example in train if example.label in old])] if is_held else []
        learner.learn(train)
        learner.forget(trial.forgotten)
        after, test_after = ask(asked), learner.answers(tested)
        came.append(ask(fresh if is_held else train))
        learner.forget(train)
        learner.learn(trial.forgotten)
        if trial.kind == "class down" and largest_fall(tested, test_before.best, test_after.best) < FALL:
            return
        for most in (HELD_OUT,) if is_held else LEFT_OUT:
            was, now = before.first_of_class(most), after.first_of_class(most)
            more = () if is_held else suspects
            was_more, now_more = before.first_of_class(most, more), after.first_of_class(most, more)
            found = compare(
                now_more.labels,
                was_more.best,
                now_more.best,
                even=len(now.examples),
                new_classes={example.label for example in trial.texts} - old,
                incoming=[*(came[0].arrivals(was) if is_held else ()), *came[-1].arrivals(now)],
            )
            source = f"{most} held out" if is_held else f"{most} left out in turn"
            yield Verdict(self.name, source, trial.kind, found.is_refused)


def first_of_class(examples: Texts, most: int) -> Iterator[tuple[int, Example]]:
    """The first examples of each class, with their indices."""
    seen: Counter[str] = Counter()
    for index, example in enumerate(examples):
        seen[example.label] += 1
        if seen[example.label] <= most:
            yield index, example


def sampled(examples: Texts, most: int) -> Texts:
    return [example for _, example in first_of_class(examples, most)]


def largest_fall(examples: Texts, before: Sequence[str], after: Sequence[str]) -> float:
    """How far the accuracy of the class that suffers most goes down."""
    texts: Counter[str] = Counter()
    falls: Counter[str] = Counter()
    for example, was, now in zip(examples, before, after, strict=True):
        texts[example.label] += 1
        falls[example.label] += (was == example.label) - (now == example.label)
    return max(falls[label] / texts[label] for label in texts)


def print_shares(verdicts: Sequence[Verdict]) -> None:
    """Of each kind of update, how many were tried and what share was refused."""
    for source in dict.fromkeys(verdict.source for verdict in verdicts):
        cells = []
        for kind in KINDS:
            own = [one.is_refused for one in verdicts if one.source == source and one.kind == kind]
            if own:
                cells.append(f"{kind} {100 * sum(own) / len(own):.0f} % of {len(own)}")
        print(f"{verdicts[0].benchmark}, {source}: refused {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
