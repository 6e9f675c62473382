"""How large each term of RepCL's losses is, and how hard it pulls at the encoder.

    python benchmarks/gradient_shares.py --benchmark hwu64 [--tasks 2] [--preset cpu] [--set KEY=VALUE]...
                                         [--every 5] [--max-train-per-class N] [--data-dir DIR]

For every `--every`-th step of each stage the gradient of each weighted term with respect to the encoder is
taken by itself; printed are the means of the term, of its gradient's norm, and of the cosine with the
gradient of cross-entropy. Round 5, which no table reports, and training texts only.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import repcl.methods.repcl as method_file
from repcl.benchmarks import load_benchmark
from repcl.data import round_seed
from repcl.experiments import plan_run
from repcl.methods import build_method
from repcl.presets import load_preset, parse_overrides
from repcl.training import LossTerms, run_stage

ROUND = 5
REFERENCE = ("ce", "clean")


def main() -> None:
    options = read_options()
    torch.set_num_threads(1)
    stream = load_benchmark(
        options.benchmark,
        round=ROUND,
        data_dir=options.data_dir,
        max_train_per_class=options.max_train_per_class,
    )
    settings = parse_overrides(options.set, ["repcl"], load_preset(options.preset))["repcl"]
    plan = plan_run("repcl", stream, preset=options.preset, settings=settings)
    learner = build_method(
        "repcl", stream.kind, encoder=plan.encoder, settings=plan.settings, seed=round_seed(ROUND)
    )
    for number, task in enumerate(stream.tasks[: options.tasks]):
        method_file.run_stage = measuring(number, options.every)
        learner.learn(task)


def measuring(task: int, every: int) -> Callable[..., None]:
    """The loop, with a look at the gradients of some steps before they are added up."""

    def stage(
        learner: Any, name: str, batches: Any, losses: Callable[[Any], Any], *rest: Any, **more: Any
    ) -> None:
        seen: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        step = 0

        def watched(batch: Any) -> Iterable[LossTerms]:
            nonlocal step
            step += 1
            encoder = list(learner.encoder.parameters())  # as they are inside the stage, which may swap some
            produced = losses(batch)
            reference: Tensor | None = None
            for terms in [produced] if isinstance(produced, Mapping) else produced:
                if step % every == 0:
                    for term, value in terms.items():
                        gradient = flat_gradient(value, encoder)
                        reference = gradient if term in REFERENCE else reference
                        alike = cosine(gradient, reference) if reference is not None else float("nan")
                        seen[term].append((float(value.detach()), float(gradient.norm()), alike))
                yield terms

        run_stage(learner, name, batches, watched, *rest, **more)
        total = sum(mean(rows, 1) for rows in seen.values())
        print(f"task {task + 1}, {name}")
        for term, rows in seen.items():
            print(
                f"  {term:16} loss {mean(rows, 0):8.4f}  norm {mean(rows, 1):8.4f}  "
                f"share {mean(rows, 1) / total:5.1%}  cosine with {REFERENCE[0]} {mean(rows, 2):+.2f}",
                flush=True,
            )

    return stage


def flat_gradient(value: Tensor, parameters: list[torch.nn.Parameter]) -> Tensor:
    found = torch.autograd.grad(value, parameters, retain_graph=True, materialize_grads=True)
    return torch.cat([part.flatten() for part in found])


def cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(one, other, dim=0))


def mean(rows: list[tuple[float, float, float]], column: int) -> float:
    return sum(row[column] for row in rows) / len(rows)


def read_options() -> argparse.Namespace:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--benchmark", default="demo")
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--max-train-per-class", type=int)
    parser.add_argument("--data-dir", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
