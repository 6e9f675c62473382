"""Folders with one file that may hold anything: runs and model folders, and all that is read of them."""

import gzip
import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.console import Console

from repcl.errors import RepclError, ResultMismatch

Read = Callable[[bytes], object]
"""Puts bytes where a file was, and reads the folder."""

RUN = "demo/fea/round-0"
PROGRESS = {  # of three tasks with 6, 3 and 6 test texts
    "fingerprint": "x",
    "predictions": [["fruit"] * 6, ["fruit"] * 9, ["fruit"] * 15],
    "seconds": [{"evaluation": 0.5}, {}, {}],
    "saves_representations": False,
    "steps": 3,
}


# ---- runs ---------------------------------------------------------------------------------------


def _run_folder(folder: Path) -> Path:
    from tests.experiments.made_up import write_grid

    write_grid(folder, {"fea": 0.8}, rounds=1, tasks=2)
    return folder / RUN


def _all_tables(folder: Path) -> None:
    """All that a report and a terminal say about runs; the figures are left out, for they take seconds."""
    from repcl.cli.tables import print_results
    from repcl.experiments.paper.numbers import load_paper
    from repcl.experiments.reports import provenance, scores
    from repcl.experiments.reports.formats import to_csv, to_latex, to_markdown
    from repcl.experiments.reports.grouping import load_runs, row_names
    from repcl.experiments.reports.significance import significance_table

    benchmarks = load_runs(folder)
    results = [result for runs in benchmarks for result in runs.results]
    rows, paper = row_names(benchmarks), load_paper()
    tables = [provenance.versions_table(results), provenance.files_table(results)]
    provenance.commands(results)
    for runs in benchmarks:
        forgotten = (scores.forgotten_table(runs.name, method) for method in runs.methods)
        tables += [
            scores.results_table(runs, paper),
            scores.tasks_table(runs),
            scores.overview_table([runs], rows),
            provenance.origin_table(runs),
            provenance.settings_table(runs),
            provenance.settings_table(runs, everything=True),
            provenance.costs_table(runs),
            *(table for table in (significance_table(runs, None), *forgotten) if table is not None),
        ]
    for table in tables:
        for write in (to_csv, to_latex, to_markdown):
            write(table).encode("utf-8", "strict")
    with Path("/dev/null").open("w") as nowhere:
        print_results(results, Console(file=nowhere))


def result_file(folder: Path) -> Read:
    path = _run_folder(folder) / "result.json"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        _all_tables(folder)

    return read


def predictions_file(folder: Path) -> Read:
    path = _run_folder(folder) / "predictions.jsonl.gz"

    def read(data: bytes) -> None:
        path.write_bytes(gzip.compress(data, compresslevel=1))
        _all_tables(folder)

    return read


def analysis_file(folder: Path) -> Read:
    from repcl.experiments.reports.analysis_tables import analyses_table, run_tables
    from repcl.experiments.reports.formats import to_csv
    from repcl.experiments.runs.store import RunStore

    path = _run_folder(folder) / "analysis.json"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        (run,) = RunStore(folder).runs()
        found = run.analysis()
        if found is not None:
            for table in [*run_tables(found), analyses_table([(run.result, found)])]:
                to_csv(table).encode("utf-8", "strict")

    return read


def progress_file(folder: Path) -> Read:
    """A checkpoint whose measurements are strange; what it leads to is a result, or a sentence."""
    from repcl.experiments import RunSpec
    from repcl.experiments.runs.run import check_progress, summarize_run, tested_examples
    from repcl.experiments.runs.spec import RunOptions
    from repcl.experiments.runs.store import RunFolder
    from repcl.methods import build_method
    from tests.conftest import tiny_encoder
    from tests.experiments.runs.test_run import toy_stream

    encoder, stream = tiny_encoder(), toy_stream()
    learner = build_method("ncm", "sentence", encoder=encoder, settings={}, device="cpu")
    run = RunSpec("ncm", stream, RunOptions(encoder=encoder, out=folder / "none")).resolve()
    path = folder / "run/checkpoint-3/progress.json"
    path.parent.mkdir(parents=True)
    store = RunFolder(folder / "run")

    def read(data: bytes) -> None:
        path.write_bytes(data)
        progress = store.progress()
        assert progress is not None
        check_progress(run, progress, store.path)
        if len(progress.predictions) < len(stream.tasks):
            raise ResultMismatch("More tasks are to be learned.")
        tested = tested_examples(stream, progress)
        summarize_run(run, learner, progress, tested).to_json().encode("utf-8", "strict")

    return read


def _run_with_representations(folder: Path) -> Path:
    from repcl.experiments import run_experiment
    from tests.conftest import tiny_encoder
    from tests.experiments.runs.test_run import toy_stream

    run_experiment("ncm", toy_stream(), encoder=tiny_encoder(), out=folder, save_representations=True)
    return folder / "toy/ncm/round-1/representations/after-0.safetensors"


def representations_file(folder: Path) -> Read:
    from repcl.experiments.representations.read import read_snapshots
    from repcl.experiments.runs.store import RunStore

    path = _run_with_representations(folder)
    (run,) = RunStore(folder).runs()

    def read(data: bytes) -> None:
        path.write_bytes(data)
        read_snapshots(run)

    return read


# ---- model folders ------------------------------------------------------------------------------


def _model(folder: Path) -> Path:
    from repcl import ContinualClassifier
    from tests.classifier.conftest import save_tiny_encoder, toy

    encoder = save_tiny_encoder(folder / "encoder")
    classifier = ContinualClassifier("ncm", str(encoder), holdout_per_class=1, device="cpu")
    classifier.fit(*toy("fruit", "vehicle", texts=6)).save(folder / "model")
    return folder / "model"


def digest(body: Any) -> str:
    """How a record's hash is made."""
    plain = json.dumps(body, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return sha256(plain.encode()).hexdigest()


def _with_hash(data: bytes) -> bytes:
    """A record as someone writes it who knows how its hash is made; other bytes as they are."""
    try:
        head = json.loads(data)
        return json.dumps(head | {"sha256": digest(head["record"])}).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return data


def record_file(name: str, folder: Path) -> Read:
    """A record of the model folder, with and without the right hash."""
    from repcl.classifier import ModelFolder

    path = _model(folder) / name

    def read(data: bytes) -> None:
        path.write_bytes(_with_hash(data))
        model = ModelFolder(path.parent if name == "current.json" else path.parents[1])
        model.history()
        model.numbers()
        model.in_use()

    return read


def blob_file(entry: Callable[[dict[str, Any]], dict[str, Any]], folder: Path) -> Read:
    """A file of the model, under the name that its bytes have, in a record that says so."""
    from repcl import ContinualClassifier

    model = _model(folder)
    path = model / "revisions/000001.json"
    original = json.loads(path.read_text())

    def read(data: bytes) -> None:
        whole = json.loads(json.dumps(original))
        blob = entry(whole["record"]["contents"])
        ending = blob["file"].rpartition(".")[2]
        blob.update(file=f"{sha256(data).hexdigest()}.{ending}", bytes=len(data))
        path.write_text(json.dumps(whole | {"sha256": digest(whole["record"])}))
        put = model / "blobs" / blob["file"]
        was_there = put.exists()
        put.write_bytes(data)
        try:
            classifier = ContinualClassifier.load(model, device="cpu")
            assert math.isfinite(classifier.predict_proba(["a red apple"]).sum())
        finally:
            if not was_there:
                put.unlink()

    return read


# ---- what a service and an export keep in model folders ------------------------------------------


def _model_of_relations(folder: Path) -> Path:
    """A model whose texts have spans, for a stranger's may be anywhere."""
    from repcl import ContinualClassifier
    from tests.classifier.conftest import save_tiny_encoder
    from tests.conftest import toy_task

    encoder, task = (
        save_tiny_encoder(folder / "encoder", "relation"),
        toy_task("relation", "fruit", "vehicle"),
    )
    classifier = ContinualClassifier("ncm", str(encoder), holdout_per_class=1, device="cpu")
    classifier.fit(task.train, [example.label for example in task.train]).save(folder / "model")
    return folder / "model"


def _collected() -> bytes:
    from repcl.classifier.store.collected import CollectedText, Collection
    from repcl.classifier.store.records import now, to_json

    texts = ("Ann met Bo in Rome", "Bo left")
    return to_json(
        Collection(
            texts=tuple(
                CollectedText(id=str(number), when=now(), text=text, head=(0, 2), tail=(4, 7))
                for number, text in enumerate(texts)
            )
        )
    )


def collected_file(folder: Path) -> Read:
    """Texts that a service kept for review: answered, and counted by the README."""
    from repcl.classifier import ModelFolder
    from repcl.classifier.answerer import open_answerer
    from repcl.classifier.store.collected import read_collection

    model = _model_of_relations(folder)
    answerer, path = open_answerer(model, device="cpu"), model / "service/collected.json"
    path.parent.mkdir()

    def read(data: bytes) -> None:
        path.write_bytes(_with_hash(data))
        ModelFolder(model).refresh_readme()
        answerer.answer([one.example() for one in read_collection(model).texts])

    return read


def _jobs() -> bytes:
    from repcl.classifier.store.records import now, to_json
    from repcl.serving.bodies import JobBody, JobProblem, Progress
    from repcl.serving.journal import JobEntries, JobEntry

    half = Progress(stage="solving", done=1, total=2, seconds_left=0.5)
    jobs = (
        JobBody(id="a", action="learn", state="running", created=now(), progress=half),
        JobBody(id="b", action="remove", state="done", created=now(), finished=now(), revision=2),
        JobBody(
            id="c", action="merge", state="failed", created=now(), problem=JobProblem(title="x", detail="")
        ),
    )
    return to_json(JobEntries(jobs=tuple(JobEntry(job=job) for job in jobs)))


def jobs_file(folder: Path) -> Read:
    """Jobs of the service before, as the next one tells and writes them."""
    from repcl.serving.bodies import JobsBody
    from repcl.serving.journal import Journal
    from repcl.serving.place import Place

    place = Place(_model(folder))
    place.claim()

    def read(data: bytes) -> None:
        place.write("jobs.json", _with_hash(data))
        entries = Journal(place).read()
        JobsBody(jobs=[entry.job for entry in entries]).model_dump_json().encode("utf-8", "strict")
        Journal(place).write(entries)
        again = Journal(place).read()
        assert [entry.job.id for entry in again] == [entry.job.id for entry in entries][-len(again) :]

    return read


def _exported(folder: Path) -> Path:
    """A model with an export of two graphs, which are both asked about every text."""
    from repcl.classifier import ModelFolder
    from repcl.classifier.export import export_model

    model = ModelFolder(_model(folder))
    with model.lock("exporting"):
        export_model(model, precision="int8")
    doubt_everything(model.path)
    return model.path


def doubt_everything(model: Path) -> None:
    """Let an int8 export ask its second graph about every text."""
    record = export_record(model)
    _write_export(model, record | {"second": record["second"] | {"doubt": 1e6}})


def export_record(model: Path) -> dict[str, Any]:
    """What `export.json` says."""
    return dict(json.loads((model / "export.json").read_text())["record"])


def _write_export(model: Path, record: dict[str, Any]) -> None:
    whole = {"format": 1, "sha256": digest(record), "record": record}
    (model / "export.json").write_text(json.dumps(whole))


def _answer_by_export(model: Path) -> None:
    """Answer with the export, or say in one sentence why not."""
    from repcl.classifier import ModelFolder
    from repcl.classifier.exported import open_export
    from repcl.data import Example

    told: list[str] = []
    ModelFolder(model).history()
    answerer = open_export(ModelFolder(model), threads=1, tell=told.append)
    if answerer is not None:
        found = answerer.answer([Example("a red apple", "")], answerer.unknown_rule("auto", "unknown"))
        assert math.isfinite(found.probabilities.sum())
    if told:
        raise RepclError(" ".join(told))
    assert answerer is not None


def export_file(folder: Path) -> Read:
    """The record of an export, with and without the right hash."""
    model = _exported(folder)

    def read(data: bytes) -> None:
        (model / "export.json").write_bytes(_with_hash(data))
        _answer_by_export(model)

    return read


def graph_file(folder: Path) -> Read:
    """The first or second graph of an export, under the name that its bytes have, which its record gives."""
    model = _exported(folder)
    original = export_record(model)

    def read(data: bytes) -> None:
        name = f"{sha256(data).hexdigest()}.onnx"
        graph = {"graph": {"file": name, "bytes": len(data)}}
        is_second = name[0] in "01234567"
        _write_export(model, original | ({"second": original["second"] | graph} if is_second else graph))
        (model / "blobs" / name).write_bytes(data)
        try:
            _answer_by_export(model)
        finally:
            (model / "blobs" / name).unlink()

    return read


def _graph(model: Path) -> bytes:
    return (model / "blobs" / export_record(model)["second"]["graph"]["file"]).read_bytes()


def good_files(folder: Path) -> dict[str, bytes]:
    """Good files of a run and of a model, by the reader that reads them."""
    from repcl.experiments.representations.analysis import _AS_JSON
    from tests.experiments.paper.test_information import analyzed

    run, model = _run_folder(folder / "runs"), _model(folder)
    contents = json.loads((model / "revisions/000001.json").read_text())["record"]["contents"]
    blobs = {name: (model / "blobs" / entry(contents)["file"]).read_bytes() for name, entry in BLOBS.items()}
    return {
        "analysis": _AS_JSON.dump_json(replace(analyzed(1.0, 2.0), fingerprint="demo-fea-0")),
        "progress": json.dumps(PROGRESS).encode(),
        "representations": _run_with_representations(folder / "made").read_bytes(),
        "result": (run / "result.json").read_bytes(),
        "predictions": gzip.decompress((run / "predictions.jsonl.gz").read_bytes()),
        "current": (model / "current.json").read_bytes(),
        "revision": (model / "revisions/000001.json").read_bytes(),
        "collected": _collected(),
        "jobs": _jobs(),
        **blobs,
    }


def good_export(folder: Path) -> dict[str, bytes]:
    """A good export, by the reader that reads its parts; it takes seconds to make."""
    model = _exported(folder)
    return {"export": (model / "export.json").read_bytes(), "graph": _graph(model)}


BLOBS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "exemplars": lambda contents: contents["held_out"]["file"],
    "config": lambda contents: contents["encoder"]["config"],
    "tokenizer": lambda contents: contents["encoder"]["tokenizer"],
    "tensor": lambda contents: contents["tensors"]["ledger.kept.labels"],
}

FOLDERS: dict[str, Callable[[Path], Read]] = {
    "result": result_file,
    "predictions": predictions_file,
    "analysis": analysis_file,
    "progress": progress_file,
    "representations": representations_file,
    "current": partial(record_file, "current.json"),
    "revision": partial(record_file, "revisions/000001.json"),
    **{name: partial(blob_file, entry) for name, entry in BLOBS.items()},
    "collected": collected_file,
    "jobs": jobs_file,
    "export": export_file,
    "graph": graph_file,
}
