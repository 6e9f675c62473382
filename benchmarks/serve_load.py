"""What a service answers under load, with and without a learning job, against the bare encoder on one core.

    python benchmarks/serve_load.py [--seconds 60] [--clients 32] [--method instant] [--json]

The service has core 0 to itself; clients and the learning process share core 1. Every request asks about one
text that was never asked before. Jobs run half of the time: each is followed by a pause as long as it took.
Afterwards answers are compared with those of the revisions that gave them, loaded again. Bare means: the same
encoder on such texts, tokenized, in batches of 64 by length, pooled, on core 0, with nothing else running.
"""

import argparse
import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVICE_CORE, CLIENT_CORE = 0, 1
WARM_UP_SECONDS = 10.0
MOST_COMPARED = 3000
CLOSE = 1e-3  # texts that are answered together are padded, which changes the last bits


@dataclass
class Answered:
    """A request that was answered."""

    text: str
    sent: float
    seconds: float
    revision: int
    label: str
    confidence: float
    has_job: bool


@dataclass
class Load:
    """What has happened so far."""

    answered: list[Answered] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    texts_per_turn: float = 0.0
    has_job: bool = False
    job_seconds: float = 0.0
    number: int = 0


def main() -> None:
    options = read_options()
    os.sched_setaffinity(0, {CLIENT_CORE})
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        bare = in_child("prepare", model, options.method)["bare_texts_per_second"]
        with service(model) as (process, port, token):
            load = asyncio.run(put_under_load(port, token, process.pid, options))
        wrong = compare(model, load)
    result = summary(load, options, bare) | wrong
    lines = "\n".join(f"{key}: {value}" for key, value in result.items())
    print(json.dumps(result, default=float) if options.json else lines)


def read_options() -> argparse.Namespace:
    if len(sys.argv) > 1 and sys.argv[1] == "prepare":  # the part that runs on the service's core
        prepare(Path(sys.argv[2]), sys.argv[3])
        sys.exit()
    parser = argparse.ArgumentParser(description="a service under load")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--method", default="instant")
    parser.add_argument("--no-jobs", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


# ---- the model, and what its encoder does alone -------------------------------------------------


def in_child(*words: object) -> dict[str, Any]:
    command = ["taskset", "-c", str(SERVICE_CORE), sys.executable, __file__, *map(str, words)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def prepare(model: Path, method: str) -> None:
    """Teach a model half of the demo's classes, and measure its bare encoder."""
    import torch

    from repcl import ContinualClassifier

    sys.path.insert(0, str(Path(__file__).parent))
    from predict_speed import bare

    torch.set_num_threads(1)
    examples = demo("train")
    names = sorted({label for _, label in examples})
    known = [one for one in examples if one[1] in names[: len(names) // 2]]
    classifier = ContinualClassifier(method, device="cpu", tolerance=1.0)
    classifier.fit([text for text, _ in known], [label for _, label in known]).save(model)
    texts = [fresh(number) for number in range(1200)]
    bare(classifier, texts[:200])
    begun = time.perf_counter()
    bare(classifier, texts[200:])
    print(json.dumps({"bare_texts_per_second": 1000 / (time.perf_counter() - begun)}))


def demo(part: str) -> list[tuple[str, str]]:
    from repcl.benchmarks import load_benchmark

    tasks = load_benchmark("demo", round=0).tasks
    return [(one.text, one.label) for task in tasks for one in getattr(task, part)]


_TEXTS: list[str] = []


def fresh(number: int) -> str:
    """A text that was never asked about before."""
    if not _TEXTS:
        _TEXTS.extend(text for text, _ in demo("test"))
    return f"{_TEXTS[number % len(_TEXTS)]} {number}"


# ---- the service --------------------------------------------------------------------------------


@contextmanager
def service(model: Path) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    token = secrets.token_urlsafe()
    command = [
        "taskset",
        "-c",
        str(SERVICE_CORE),
        sys.executable,
        "-m",
        "repcl",
        "serve",
        str(model),
        "--port",
        "0",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"REPCL_TOKEN": token, "COLUMNS": "200"}
    )
    try:
        said = process.stdout.readline() if process.stdout is not None else ""
        address = re.search(r"http://127\.0\.0\.1:(\d+)/", said)
        if address is None:
            sys.exit(f"the service did not start: {said}")
        yield process, int(address[1]), token
    finally:
        process.terminate()
        if code := process.wait(60):
            print(f"the service ended with exit code {code}", file=sys.stderr)


def to_other_core(service: int) -> None:
    """Put the learning process, which starts where the service is, beside the clients."""
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == service
            ):
                for thread in (entry / "task").iterdir():
                    os.sched_setaffinity(int(thread.name), {CLIENT_CORE})
        except (OSError, ValueError):  # it has ended meanwhile
            continue


def memory_of(service: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{service}/status").read_text())
    return int(found[1]) * 1024 if found else 0


# ---- the load -----------------------------------------------------------------------------------


async def put_under_load(port: int, token: str, service: int, options: argparse.Namespace) -> Load:
    load, end = Load(), time.monotonic() + options.seconds
    clients = [client(port, load, end) for _ in range(options.clients)]
    jobs = [] if options.no_jobs else [teach(port, token, load, end)]
    await asyncio.gather(*clients, *jobs, watch(service, load, end))
    load.texts_per_turn = await texts_per_turn(port)
    return load


async def texts_per_turn(port: int) -> float:
    """How many texts the service has answered together on average, by its own count."""
    connection = await asyncio.open_connection("127.0.0.1", port)
    _, page = await ask(connection, "GET", "/v1/metrics")
    connection[1].close()
    counts = dict(re.findall(r"^repcl_(texts|turns)_total (\d+)", page, re.M))
    return float(counts["texts"]) / float(counts["turns"])


async def client(port: int, load: Load, end: float) -> None:
    """One request after another, on one connection."""
    connection = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < end:
        load.number += 1
        text, sent, has_job = fresh(load.number), time.monotonic(), load.has_job
        status, body = await ask(connection, "POST", "/v1/predict", {"texts": [text], "top": 1})
        if status != 200:
            load.errors.append(f"{status} {body}")
            continue
        (best,) = body["predictions"][0]["top"]
        seconds = time.monotonic() - sent
        load.answered.append(
            Answered(text, sent, seconds, body["revision"], best["label"], best["probability"], has_job)
        )
    connection[1].close()


async def teach(port: int, token: str, load: Load, end: float) -> None:
    """Learning jobs, half of the time: one begins whenever there was no job for longer than with one."""
    examples, number = demo("train"), 0
    begun = time.monotonic()
    while (now := time.monotonic()) < end:
        if load.job_seconds > (now - begun) / 2:
            await asyncio.sleep(0.1)
            continue
        number += 1
        taught = [{"text": f"{text} {number}", "label": label} for text, label in examples]
        load.has_job = True
        connection = await asyncio.open_connection("127.0.0.1", port)  # one that rests is closed
        _, job = await ask(connection, "POST", "/v1/learn", {"examples": taught}, token)
        while job["state"] in ("queued", "running"):
            await asyncio.sleep(0.1)
            _, job = await ask(connection, "GET", f"/v1/jobs/{job['id']}")
        connection[1].close()
        load.job_seconds += time.monotonic() - now
        load.has_job = False
        load.jobs.append(job)


async def watch(service: int, load: Load, end: float) -> None:
    begun = time.monotonic()
    while time.monotonic() < end:
        to_other_core(service)
        load.memory.append((time.monotonic() - begun, memory_of(service)))
        await asyncio.sleep(0.25)


async def ask(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    method: str,
    path: str,
    body: Any = None,
    token: str = "",
) -> tuple[int, Any]:
    """A request on a connection that stays open; a client library would need most of a core."""
    reader, writer = connection
    data = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    writer.write(head.encode() + data)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = re.search(r"content-length: (\d+)", answer)
    body = await reader.readexactly(int(length[1]) if length else 0)
    is_json = "content-type: application/json" in answer
    return int(answer.split()[1]), json.loads(body) if is_json else body.decode()


# ---- what came of it ----------------------------------------------------------------------------


def compare(model: Path, load: Load) -> dict[str, Any]:
    """Answers that are not those of the revision they came from."""
    from repcl import ContinualClassifier

    step = max(1, len(load.answered) // MOST_COMPARED)
    compared, wrong, differences = load.answered[::step], 0, [0.0]
    for revision in sorted({one.revision for one in compared}):
        own = [one for one in compared if one.revision == revision]
        classifier = ContinualClassifier.load(model, revision=revision, device="cpu")
        probabilities = classifier.predict_proba([one.text for one in own])
        column = {label: index for index, label in enumerate(classifier.classes_)}
        for one, row in zip(own, probabilities, strict=True):
            differences.append(abs(row[column[one.label]] - one.confidence) if one.label in column else 1.0)
            wrong += differences[-1] > CLOSE or row.max() - row[column[one.label]] > CLOSE
    return {"compared": len(compared), "not_of_one_revision": wrong, "largest_difference": max(differences)}


def summary(load: Load, options: argparse.Namespace, bare: float) -> dict[str, Any]:
    rate = len(load.answered) / options.seconds
    late = [used for at, used in load.memory if at > min(WARM_UP_SECONDS, options.seconds / 2)]
    states = [job["state"] for job in load.jobs]
    return {
        "requests": len(load.answered),
        "errors": len(load.errors),
        "first_errors": load.errors[:3],
        "revisions_seen": len({one.revision for one in load.answered}),
        "share_of_time_with_job": round(load.job_seconds / options.seconds, 2),
        "jobs": {state: states.count(state) for state in sorted(set(states))},
        "bare_texts_per_second": round(bare, 1),
        "texts_per_second": round(rate, 1),
        "share_of_bare": round(rate / bare, 3),
        "texts_per_turn": round(load.texts_per_turn, 1),
        "without_job_ms": percentiles([one.seconds for one in load.answered if not one.has_job]),
        "with_job_ms": percentiles([one.seconds for one in load.answered if one.has_job]),
        "memory_megabytes": {
            "early": megabytes(late[0]),
            "late": megabytes(late[-1]),
            "most": megabytes(max(late)),
            "over_time": [megabytes(used) for _, used in load.memory[:: max(1, len(load.memory) // 20)]],
        },
    }


def percentiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"p{part}": round(1000 * ordered[min(len(ordered) - 1, len(ordered) * part // 100)], 1)
        for part in (50, 99)
        if ordered
    }


def megabytes(size: int) -> float:
    return round(size / 2**20, 1)


if __name__ == "__main__":
    main()
