"""Two processes and one make the same run; so do one pass and several smaller ones."""

import copy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, multiprocessing, nn
from torch import distributed as torch_distributed

from repcl.data import Batch, TaskStream
from repcl.errors import ProcessesDisagree
from repcl.experiments import run_experiment
from repcl.experiments.runs.run import agreed_result, check_agreement
from repcl.experiments.runs.spec import ResolvedRun, RunOptions, RunSpec, plan_run
from repcl.experiments.runs.store import RunFolder
from repcl.methods import Method, build_method, load_method, save_method
from repcl.model import ALONE, Embedder, Processes
from repcl.training import Observer
from tests.conftest import tiny_encoder, toy_task

TASKS = (
    toy_task("sentence", "fruit", "vehicle", train=9),
    toy_task("sentence", "weather", "place", train=9),
)
SETTINGS = {"batch_size": 5, "initial_epochs": 6, "learning_rate": 1e-3, "head_learning_rate": 1e-3}
LEARNERS: dict[str, dict[str, Any]] = {
    "repcl": {"warmup_epochs": 1.0, "queue_size": 12, "replay_epochs": 6, "generation_weight": 1.0},
    "repcl with a cached attack": {
        "warmup_epochs": 1.0,
        "queue_size": 12,
        "replay_epochs": 6,
        "cached_attack": True,
        "adversarial_radius": 1.0,
        "adversarial_step_size": 1.0,
    },
    "fea": {"replay_epochs": 6},
    "crl": {"replay_epochs": 6},
    # slow, for Adam makes last bits large where gradients are nearly zero
    "emar": {"replay_epochs": 1, "clip_norm": 0.1, "learning_rate": 1e-4, "head_learning_rate": 1e-4},
}


class Curve(Observer):
    """The loss terms of every step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        self.steps.append({name: float(term) for name, term in terms.items()})


def learn(name: str, processes: Processes, **settings: object) -> dict[str, Any]:
    """Two tasks without dropout: curve, exemplars and scores."""
    method = build_method(
        name.split()[0],
        "sentence",
        encoder=tiny_encoder(dropout=0.0),
        settings=SETTINGS | LEARNERS[name] | settings,
        seed=3,
        device="cpu",
        processes=processes,
    )
    for part in method.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    method.observer = curve = Curve()
    for task in TASKS:
        method.learn(task)
    tests = [example for task in TASKS for example in task.test]
    return {
        "steps": curve.steps,
        "memory": [example.text for example in method.memory],
        "scores": method.scores(tests),
        "first weight": next(method.encoder.parameters()).detach(),
    }


def a_batch(method: Method, size: int) -> Batch:
    return next(iter(method.batches(TASKS[0].train[:1] * size, size)))


def built(processes: Processes, *, dropout: float = 0.1) -> Method:
    encoder = tiny_encoder(dropout=dropout)
    return build_method("fea", "sentence", encoder=encoder, settings={}, device="cpu", processes=processes)


def dropout_rows(processes: Processes) -> dict[str, Any]:
    """The same text in every row, encoded with dropout; and a draw made afterwards."""
    method = built(processes).train()
    torch.manual_seed(0)
    with torch.no_grad():
        rows = method.encoder.represent(a_batch(method, 4))
    return {"rows": rows, "draw": torch.rand(()).item()}


def uneven_gradient(processes: Processes) -> dict[str, Tensor]:
    """Gradients of weights and of a perturbation, from three rows."""
    method = built(processes, dropout=0.0).train()
    batch = next(iter(method.batches(TASKS[0].train[:3], 3)))
    delta = torch.zeros(*batch.ids.shape, 32, requires_grad=True)
    weights = torch.linspace(-1, 1, 3 * 32).reshape(3, 32)
    (method.encoder.represent(batch, delta) * weights).sum().backward()
    processes.average_gradients(method.encoder.parameters())
    joined = method.encoder(batch)
    assert delta.grad is not None
    embeddings = method.encoder.word_embeddings.weight.grad
    assert embeddings is not None
    return {"weights": embeddings, "perturbation": delta.grad, "states": joined.detach()}


def others(processes: Processes) -> dict[str, Any]:
    return {
        "of the first": processes.of_the_first(f"from {processes.rank}"),
        "equal": processes.is_equal_everywhere("same"),
        "unequal": processes.is_equal_everywhere(processes.rank),
        "embeddings": Embedder(built(processes).encoder)(TASKS[0].test),
    }


def sentence_of(function: Callable[..., object], *arguments: object, **named: object) -> str:
    """What an error says."""
    try:
        function(*arguments, **named)
    except ProcessesDisagree as error:
        return str(error)
    return "no error"


def disagreements(folder: Path, processes: Processes) -> dict[str, str]:
    """What is said when folders, data or memories differ between processes."""
    rank = processes.rank
    own = folder / f"not-shared-{rank}"
    if rank == 0:
        (own / "checkpoint-1").mkdir(parents=True)
        (own / "checkpoint-1/progress.json").write_text('{"fingerprint": "same", "predictions": [["fruit"]]}')
    stream = TaskStream("toy", "sentence", TASKS)

    def run(fingerprint: str, *, fresh: bool = False) -> ResolvedRun:
        spec = RunSpec("fea", stream, RunOptions(fresh=fresh, processes=processes))
        return ResolvedRun(spec, "toy", plan_run("fea", stream), RunFolder(own), fingerprint)

    return {
        "folder": sentence_of(agreed_result, run("same")),
        "fresh folder": sentence_of(agreed_result, run("same", fresh=True)),
        "data": sentence_of(agreed_result, run(f"data {rank}")),
        "predictions": sentence_of(check_agreement, built(processes), [f"class {rank}"]),
    }


def a_run(folder: Path, processes: Processes) -> list[str]:
    """A whole run in a folder of each process's own; gives what it wrote there."""
    run_experiment(
        "fea",
        TaskStream("toy", "sentence", TASKS, round=0),
        encoder=tiny_encoder(),
        settings={"initial_epochs": 1, "replay_epochs": 1},
        out=folder / f"out-{processes.rank}",
        save_representations=True,
        report_to=("tensorboard",),
        processes=processes,
    )
    return sorted(path.name for path in folder.glob(f"out-{processes.rank}/toy/fea/round-0/*"))


SCENARIOS: dict[str, Callable[[Processes], dict[str, Any]]] = {
    "dropout": dropout_rows,
    "gradient": uneven_gradient,
    "others": others,
}


def everything(processes: Processes) -> dict[str, Any]:
    learned = {name: learn(name, processes) for name in LEARNERS}
    return learned | {name: scenario(processes) for name, scenario in SCENARIOS.items()}


def one_of_two(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch_distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    processes = Processes(number=2, rank=rank)
    found = everything(processes)
    found["disagreements"] = disagreements(Path(folder), processes)
    found["written"] = a_run(Path(folder), processes)
    torch.save(found, f"{folder}/{rank}.pt")
    torch_distributed.destroy_process_group()


@pytest.fixture(scope="module")
def together(tmp_path_factory) -> list[dict[str, Any]]:
    """What each of two processes found."""
    folder: Path = tmp_path_factory.mktemp("two")
    multiprocessing.spawn(one_of_two, args=(str(folder),), nprocs=2)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    """What one process finds."""
    return everything(ALONE)


@pytest.mark.parametrize("name", LEARNERS)
def test_two_processes_have_the_loss_curve_of_one(together, alone, name):
    for found in together:
        assert len(found[name]["steps"]) == len(alone[name]["steps"]) >= 50
        for step, expected in zip(found[name]["steps"][:50], alone[name]["steps"][:50], strict=True):
            assert step == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", LEARNERS)
def test_two_processes_keep_the_memory_of_one(together, alone, name):
    assert together[0][name]["memory"] == together[1][name]["memory"] == alone[name]["memory"]


@pytest.mark.parametrize("name", LEARNERS)
def test_test_texts_split_over_processes_come_back_in_their_order(together, alone, name):
    for found in together:
        torch.testing.assert_close(found[name]["scores"], alone[name]["scores"], rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", LEARNERS)
def test_both_processes_end_with_the_same_bits(together, name):
    first, second = (found[name]["first weight"] for found in together)
    assert torch.equal(first, second)


def test_three_rows_on_two_processes_give_the_gradient_of_one(together, alone):
    for found in together:
        torch.testing.assert_close(found["gradient"]["weights"], alone["gradient"]["weights"])


def test_states_of_three_rows_are_joined_without_the_row_that_was_added(together, alone):
    for found in together:
        torch.testing.assert_close(found["gradient"]["states"], alone["gradient"]["states"])


def test_each_process_knows_the_gradient_of_its_own_perturbed_rows(together, alone):
    expected = alone["gradient"]["perturbation"]
    first, second = (found["gradient"]["perturbation"] for found in together)
    torch.testing.assert_close(first, torch.cat([2 * expected[:2], torch.zeros_like(expected[2:])]))
    torch.testing.assert_close(second, torch.cat([torch.zeros_like(expected[:2]), 2 * expected[2:]]))


def test_processes_draw_different_dropout_masks(together):
    rows = together[0]["dropout"]["rows"]
    assert not torch.equal(rows[:2], rows[2:])
    assert torch.equal(rows, together[1]["dropout"]["rows"])


def test_draws_after_the_encoder_are_equal_everywhere(together):
    assert together[0]["dropout"]["draw"] == together[1]["dropout"]["draw"]


def test_what_decides_comes_from_the_first_process(together):
    assert [found["others"]["of the first"] for found in together] == ["from 0", "from 0"]


def test_processes_notice_that_they_differ(together):
    assert [found["others"]["equal"] for found in together] == [True, True]
    assert [found["others"]["unequal"] for found in together] == [False, False]


def test_frozen_representations_have_the_bits_of_one_process(together, alone):
    for found in together:
        assert torch.equal(found["others"]["embeddings"], alone["others"]["embeddings"])


def test_only_the_first_process_writes(together):
    assert together[0]["written"] == [
        "predictions.jsonl.gz",
        "representations",
        "result.json",
        "tracking",
        "wrong-texts.json.gz",
    ]
    assert together[1]["written"] == []


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("folder", "to be one folder that all processes share"),
        ("data", "the same data, settings and version"),
        ("predictions", "equal memories and predictions"),
        ("fresh folder", "no error"),
    ],
)
def test_all_processes_say_in_one_sentence_that_they_disagree(together, case, words):
    for found in together:
        assert words in found["disagreements"][case]


# ---- gradient accumulation ------------------------------------------------------------------------


def gradients_of(monkeypatch: pytest.MonkeyPatch, chunks: int) -> list[Tensor]:
    """All gradients of all steps of one epoch of RepCL on either task, replay under attack included."""
    seen: list[Tensor] = []

    def look(parameters: list[nn.Parameter], norm: float) -> None:
        seen.extend(
            parameter.grad.clone().flatten() for parameter in parameters if parameter.grad is not None
        )

    monkeypatch.setattr("repcl.training.stage._clip", look)
    tiny_rate = {"learning_rate": 1e-9, "head_learning_rate": 1e-9}  # so that steps do not add up differences
    learn("repcl", Processes(chunks=chunks), initial_epochs=1, replay_epochs=1, **tiny_rate)
    return seen


def test_chunks_give_the_gradient_of_the_whole_batch(monkeypatch):
    whole, chunked = gradients_of(monkeypatch, 1), gradients_of(monkeypatch, 2)
    assert len(whole) == len(chunked)
    torch.testing.assert_close(torch.cat(chunked), torch.cat(whole), rtol=1e-4, atol=1e-6)


def test_what_is_made_again_on_the_way_back_has_the_same_dropout():
    def gradient(processes: Processes, halves: Callable[[Method, Batch], Iterator[Tensor]]) -> Tensor:
        method = built(processes).train()
        batch = a_batch(method, 4)
        torch.manual_seed(0)
        torch.cat(list(halves(method, batch))).square().sum().backward()
        found = method.encoder.word_embeddings.weight.grad
        assert found is not None
        return found

    def by_hand(method: Method, batch: Batch) -> Iterator[Tensor]:
        for rows in (slice(0, 2), slice(2, 4)):
            fields = (batch.ids, batch.mask, batch.spans, batch.labels, batch.positions)
            yield method.encoder.represent(Batch(*(field[rows] for field in fields)))

    def in_chunks(method: Method, batch: Batch) -> Iterator[Tensor]:
        yield method.encoder.represent(batch)

    torch.testing.assert_close(gradient(Processes(chunks=2), in_chunks), gradient(ALONE, by_hand))


# ---- mixed precision ------------------------------------------------------------------------------


def test_mixed_precision_changes_the_encoder_and_gives_full_precision_back():
    method = built(ALONE)
    batch = a_batch(method, 2)
    full = method.encoder.represent(batch)
    mixed = built(Processes(precision="bf16")).encoder.represent(batch)
    assert mixed.dtype == torch.float32
    assert not torch.equal(mixed, full)
    torch.testing.assert_close(mixed, full, rtol=0.05, atol=0.05)


# ---- where the field goes -------------------------------------------------------------------------


def test_an_encoder_works_alone_unless_it_is_told_otherwise():
    assert tiny_encoder().processes == ALONE


def test_a_copy_of_an_encoder_has_its_processes():
    encoder = built(Processes(chunks=2)).encoder
    assert copy.deepcopy(encoder).processes == Processes(chunks=2)


def test_a_method_built_on_a_ready_encoder_keeps_its_processes():
    encoder = tiny_encoder()
    encoder.processes = Processes(chunks=3)
    method = build_method("fea", "sentence", encoder=encoder, settings={}, device="cpu")
    assert method.processes == Processes(chunks=3)


def test_a_loaded_method_works_with_the_processes_it_is_given(tmp_path):
    save_method(built(ALONE), "fea", tmp_path)
    loaded = load_method(tmp_path, encoder=tiny_encoder(), device="cpu", processes=Processes(chunks=2))
    assert loaded.processes == loaded.encoder.processes == Processes(chunks=2)


def test_a_process_computes_where_it_was_placed(monkeypatch):
    asked = []

    def noted(device):
        asked.append(device)
        return torch.device("cpu")

    monkeypatch.setattr("repcl.methods.build.chosen_device", noted)
    encoder, placed = tiny_encoder(), Processes(device=torch.device("cuda:3"))
    build_method("fea", "sentence", encoder=encoder, settings={}, processes=placed)
    build_method("fea", "sentence", encoder=encoder, settings={}, device="cpu", processes=placed)
    assert asked == [torch.device("cuda:3"), "cpu"]
