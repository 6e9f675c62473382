"""Plain recomputations that the golden tests share: one text at a time, written from the specifications."""

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from sklearn.cluster import KMeans
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import gelu

from repcl.data import Example, Task
from repcl.methods import Method
from tests.conftest import library_tokenizer
from tests.methods.golden.watching import WORDS, Ids, State, Watched, noise, text_ids

BACKBONE = "encoder.backbone."


class Plain:
    """A method's weights by name, and what the encoder makes of one text with them.

    Args:
        method: whose encoder, tokenizer and names they are.
        state: the weights to start from.
        examples: all texts that will be met.
    """

    def __init__(self, method: Method, state: State, examples: Iterable[Example]) -> None:
        trained = {name for name, _ in method.named_parameters()}
        self.weights = {name: value.clone() for name, value in state.items()}
        for name in trained & self.weights.keys():
            self.weights[name].requires_grad_(True)
        self.classes = list(method.classes)
        self.kind = method.encoder.readout.kind
        self.tokenizer = library_tokenizer(method.encoder)
        self.examples = {text_ids(method, example): example for example in examples}
        self.ids = {example: ids for ids, example in self.examples.items()}
        self._backbone = copy.deepcopy(method.encoder.backbone)

    def __getitem__(self, name: str) -> Tensor:
        return self.weights[name]

    def rows(self, examples: Iterable[Example]) -> list[Ids]:
        return [self.ids[example] for example in examples]

    def label(self, ids: Ids) -> int:
        """The index of a text's class."""
        return self.classes.index(self.examples[ids].label)

    def states(
        self,
        ids: Ids,
        *,
        training: bool,
        weights: State | None = None,
        perturbation: Tensor | None = None,
        segments: Ids | None = None,
    ) -> Tensor:
        """States of all tokens of one text, (length, hidden), without any padding."""
        used = weights or self.weights
        inputs: dict[str, Tensor] = {"input_ids": torch.tensor([ids])}
        if perturbation is not None:
            inputs = {"inputs_embeds": (used[WORDS][list(ids)] + perturbation)[None]}
        if segments is not None:
            inputs["token_type_ids"] = torch.tensor([segments])
        own = {name[len(BACKBONE) :]: value for name, value in used.items() if name.startswith(BACKBONE)}
        output = functional_call(self._backbone.train(training), own, (), inputs)
        return output.last_hidden_state[0]  # type: ignore[no-any-return]

    def represent(self, ids: Ids, *, training: bool, **more: Any) -> Tensor:
        """The representation of one text, as its input kind wants it."""
        states = self.states(ids, training=training, **more)
        return torch.cat([states[positions].mean(dim=0) for positions in self._positions(ids)])

    def _positions(self, ids: Ids) -> list[list[int]]:
        if self.kind == "relation":
            markers = self.tokenizer.convert_tokens_to_ids(["[E11]", "[E21]"])
            return [[ids.index(marker)] for marker in markers]
        if self.kind == "event":
            example = self.examples[ids]
            assert example.trigger is not None
            start, end = example.trigger.start, example.trigger.end
            before, trigger = (
                len(self.tokenizer(part, add_special_tokens=False)["input_ids"])
                for part in (example.text[:start], example.text[start:end])
            )
            return [list(range(1 + before, 1 + before + trigger))]
        return [list(range(len(ids)))]

    def hidden(self, representation: Tensor, *, training: bool) -> Tensor:
        """The hidden block of FEA's classifier: dropout, linear, GELU, LayerNorm; nothing for events."""
        if "head.hidden.1.weight" not in self.weights:
            return representation
        dropped = noise(representation) if training else representation
        inner = self["head.hidden.1.weight"] @ dropped + self["head.hidden.1.bias"]
        return layer_norm(gelu(inner), self["head.hidden.3.weight"], self["head.hidden.3.bias"])

    def feature(self, ids: Ids, *, training: bool) -> Tensor:
        return self.hidden(self.represent(ids, training=training), training=training)

    def kept_feature(self, example: Example) -> Tensor:
        """What exemplars are chosen by: the hidden block in evaluation mode."""
        return self.feature(self.ids[example], training=False)

    def logits(self, ids: Ids, *, training: bool, **more: Any) -> Tensor:
        """Scores of all rows of the classifier."""
        feature = self.hidden(self.represent(ids, training=training, **more), training=training)
        return self["head.output.weight"] @ feature


class Stage:
    """One stage by hand: AdamW without momentum from before, warm-up, clipping.

    Args:
        plain: whose weights are trained.
        rate: the full learning rate of each weight; None for weights that are not trained.
        decay: of weights that are neither biases nor LayerNorms of the encoder.
        clip: the largest norm of the gradient.
        warmup: steps until the full rates.
        epsilon: of AdamW.
        decays_everything: whether those are decayed, too.
        rate_decay: a factor on the rates, and after how many steps it counts once more.
        part: weights of one part are clipped together; one part by default.
    """

    def __init__(
        self,
        plain: Plain,
        rate: Callable[[str], float | None],
        *,
        decay: float = 0.0,
        clip: float = 10.0,
        warmup: float = 0.0,
        epsilon: float = 1e-8,
        decays_everything: bool = False,
        rate_decay: tuple[float, float] = (1.0, math.inf),
        part: Callable[[str], str] = lambda name: "all",
    ) -> None:
        self.plain, self.decay, self.clip, self.warmup, self.part = plain, decay, clip, warmup, part
        self.epsilon, self.decays_everything, self.rate_decay = epsilon, decays_everything, rate_decay
        found = {name: rate(name) for name, value in plain.weights.items() if value.requires_grad}
        self.rates = {name: value for name, value in found.items() if value is not None}
        self.gradients: list[State] = []
        self._first: State = {}
        self._second: State = {}
        self._steps: Counter[str] = Counter()

    def step(self, loss: Tensor) -> None:
        """Follow the gradient of a loss."""
        weights, names = self.plain.weights, list(self.rates)
        found = torch.autograd.grad(loss, [weights[name] for name in names], allow_unused=True)
        gradients = {name: value for name, value in zip(names, found, strict=True) if value is not None}
        norms: dict[str, float] = Counter()
        for name, value in gradients.items():
            norms[self.part(name)] += float((value**2).sum())
        for name in gradients:
            norm = math.sqrt(norms[self.part(name)])
            gradients[name] = gradients[name] * min(1.0, self.clip / (norm + 1e-6))
        factor = min(1.0, len(self.gradients) / self.warmup) if self.warmup else 1.0
        factor *= self.rate_decay[0] ** (len(self.gradients) // self.rate_decay[1])
        self.gradients.append(gradients)
        for name, gradient in gradients.items():
            weights[name] = self._moved(name, weights[name].detach(), gradient, factor * self.rates[name])

    def _moved(self, name: str, value: Tensor, gradient: Tensor, rate: float) -> Tensor:
        """Loshchilov and Hutter's step with betas 0.9 and 0.999."""
        self._steps[name] += 1
        count = self._steps[name]
        first = 0.9 * self._first.get(name, torch.zeros_like(value)) + 0.1 * gradient
        second = 0.999 * self._second.get(name, torch.zeros_like(value)) + 0.001 * gradient**2
        self._first[name], self._second[name] = first, second
        value = value - rate * self.decay * (self.decays_everything or is_decayed(name)) * value
        move = (first / (1 - 0.9**count)) / ((second / (1 - 0.999**count)).sqrt() + self.epsilon)
        return (value - rate * move).requires_grad_(True)


def is_decayed(name: str) -> bool:
    """As in the authors' code: not biases, not the LayerNorms of the encoder, but those of the heads."""
    return not (name.endswith("bias") or "LayerNorm.weight" in name)


def two_rates(encoder: float, others: float) -> Callable[[str], float]:
    """The paper's rates: one for the encoder, one for everything else."""
    return lambda name: encoder if name.startswith("encoder.") else others


# ---- formulas --------------------------------------------------------------------------------------


def layer_norm(values: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """LayerNorm over all numbers given."""
    centered = values - values.mean()
    return centered / ((centered**2).mean() + 1e-5).sqrt() * gain + bias


def cross_entropy(logits: Tensor, label: int) -> Tensor:
    return torch.logsumexp(logits, dim=0) - logits[label]


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """-Σ p ln softmax(logits) for given probabilities p."""
    return -(targets * (logits - torch.logsumexp(logits, dim=0))).sum()


def cosine(first: Tensor, second: Tensor) -> Tensor:
    return (first @ second) / (first.norm() * second.norm())


def mean(values: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(values)).mean(dim=0)


def mean_loss(plain: Plain, rows: Sequence[Ids]) -> Tensor:
    """Plain cross-entropy of the classifier in training mode."""
    return mean(cross_entropy(plain.logits(ids, training=True), plain.label(ids)) for ids in rows)


# ---- memory ----------------------------------------------------------------------------------------


def of_class(examples: Iterable[Example], name: str) -> list[Example]:
    return [example for example in examples if example.label == name]


def centers(features: Tensor, count: int) -> list[set[int]]:
    """For each center of K-means the rows nearest to it: several where they are equally near."""
    rows = features.numpy()
    if count >= len(rows):
        return [{row} for row in range(len(rows))]
    fitted = KMeans(count, n_init=10, random_state=0).fit(rows)
    return [nearest(((rows - center) ** 2).sum(axis=1)) for center in fitted.cluster_centers_]


def nearest(distances: Any) -> set[int]:
    return {row for row, distance in enumerate(distances) if distance <= min(distances) * (1 + 1e-6)}


def nearest_to_mean(features: Tensor, count: int) -> list[set[int]]:
    """The rows nearest to the mean of all."""
    distances = ((features - features.mean(dim=0)) ** 2).sum(dim=1)
    return [{row} for row in distances.argsort()[:count].tolist()]


def assert_chosen(
    kept: Sequence[Example],
    examples: Sequence[Example],
    feature: Callable[[Example], Tensor],
    per_class: int,
    choice: Callable[[Tensor, int], list[set[int]]] = centers,
) -> None:
    """The exemplars kept of a class are those that the choice takes among these texts of the class."""
    with torch.no_grad():
        features = torch.stack([feature(example) for example in examples])
    wanted = choice(features, per_class)
    found = {examples.index(example) for example in kept}
    assert len(kept) == len(found) == len(wanted)
    assert all(len(rows & found) == 1 for rows in wanted), (found, wanted)


def assert_memory(
    method: Method,
    old: Sequence[Example],
    task: Task,
    feature: Callable[[Example], Tensor],
    choice: Callable[[Tensor, int], list[set[int]]] = centers,
) -> None:
    """Old classes keep their exemplars, and those of new classes are the ones that the choice takes."""
    assert list(method.memory)[: len(old)] == list(old)
    for name in task.classes:
        assert_chosen(
            method.memory.of(name), of_class(task.train, name), feature, method.memory.per_class, choice
        )


# ---- comparisons -----------------------------------------------------------------------------------


def assert_epochs(batches: Sequence[Sequence[Ids]], texts: Sequence[Ids], epochs: int, size: int) -> None:
    """These batches are so many epochs; each shows every text as often as it is given, so many at a time."""
    length = -(-len(texts) // size)
    assert len(batches) == epochs * length
    assert max(map(len, batches)) <= size
    for start in range(0, len(batches), length):
        assert Counter(row for batch in batches[start : start + length] for row in batch) == Counter(texts)


def assert_goes_on(watched: Watched) -> None:
    """Learning began with the weights that the last task left, and small random rows for new classes."""
    begin = watched.states[0]
    for name, before in watched.before.items():
        assert torch.equal(begin[name][: len(before)], before), name
        if len(begin[name]) > len(before) and name.endswith("weight"):
            assert 0.001 < begin[name][len(before) :].std() < 0.3, name


def assert_same_gradients(
    watched: Watched, number: int, stage: Stage, *, within: float = 1e-9, but: tuple[str, ...] = ()
) -> None:
    """Every step of a stage had the gradients that were recomputed."""
    steps = watched.steps_of(number)
    assert len(steps) == len(stage.gradients)
    for step, expected in zip(steps, stage.gradients, strict=True):
        own = {name: value for name, value in expected.items() if not name.startswith(("other.", *but))}
        found = {
            name: value for name, value in step.gradients.items() if not name.startswith(("other.", *but))
        }
        assert {name for name in found if found[name].abs().max() > 0} <= own.keys()
        for name, value in own.items():
            ours = found.get(name, torch.zeros_like(value))
            torch.testing.assert_close(
                ours, value, rtol=within, atol=within, msg=lambda text, n=name: f"{n}: {text}"
            )


def assert_same_weights(state: State, plain: Plain, *, within: float = 1e-8, but: Sequence[str] = ()) -> None:
    """A method's weights are those that were recomputed."""
    for name, value in state.items():
        if name.startswith(tuple(but)):
            continue
        expected = plain[name].detach()
        torch.testing.assert_close(
            value, expected, rtol=0.0, atol=within, msg=lambda text, n=name: f"{n}: {text}"
        )
