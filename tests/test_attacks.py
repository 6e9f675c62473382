"""The attack list: what once lost files, ran code, reached for the network or ended in a traceback.

Every attack prepares a room with files of a user and something hostile, and types commands. Each command runs
in a process of its own that is watched: what it executes, connects to, says and leaves behind. Each class of
attack has its own tests elsewhere, which generate many of its kind; this is the whole list at a glance.
"""

import gzip
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file, save_file

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder
from repcl.classifier.export import export_model
from repcl.cli.guarded import run_guarded
from repcl.cli.main import app
from tests.classifier.conftest import cheap_settings, save_tiny_encoder, toy
from tests.classifier.test_hostile import forge
from tests.crash import Breakage, breaking
from tests.data.test_bombs import dictionary_bomb, rows_bomb
from tests.experiments.made_up import write_grid
from tests.fuzz.folders import doubt_everything
from tests.fuzz.folders import export_record as export_of
from tests.fuzz.seeds import WORKBOOK, workbook
from tests.model.test_hostile_encoders import OWN_CODE, change, configured, doubling, sparse_weights

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

GIGABYTE = 1 << 30
LONGEST_MINUTES = 10
MINE = b"mine"
NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request")
EXECUTION = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "pickle.find_class")

Words = list[str]
Attack = Callable[[Path], list[Words]]


@dataclass
class Seen:
    """What became of one command."""

    code: int
    said: str
    network: list[str] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)


# ---- one watched command ------------------------------------------------------------------------


def watch(room: Path, words: Words) -> Seen:
    """Run a command in a forked process, with "y" on its standard input and a gigabyte to spend."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as noted:
        child = os.fork()
        if child == 0:
            try:
                _watched(room, words, said.fileno(), noted.fileno())
            finally:
                os._exit(99)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        noted.seek(0)
        notes = [json.loads(line) for line in noted]
        return Seen(
            code,
            said.read().decode(errors="replace"),
            [text for kind, text in notes if kind == "network"],
            [text for kind, text in notes if kind == "executed"],
        )


def _watched(room: Path, words: Words, said: int, noted: int) -> None:
    def note(kind: str, text: str) -> None:
        os.write(noted, json.dumps([kind, text]).encode() + b"\n")

    def hook(event: str, details: tuple[Any, ...]) -> None:
        if event == "socket.getaddrinfo" and details[0] == "127.0.0.1":
            return  # a service asks for the form of its own address; a connection is noted all the same
        if event in NETWORK:
            note("network", f"{event} {str(details)[:100]}")
        elif event in EXECUTION:
            note("executed", f"{event} {str(details)[:100]}")
        elif event == "exec" and str(getattr(details[0], "co_filename", "")).startswith(str(room)):
            note("executed", details[0].co_filename)

    reading, writing = os.pipe()
    os.write(writing, b"y\n" * 10)
    os.close(writing)
    os.dup2(reading, 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 (till the end)
    os.chdir(room)
    lines = Path("/proc/self/status").read_text().splitlines()
    used = int(next(line for line in lines if line.startswith("VmData")).split()[1])
    resource.setrlimit(resource.RLIMIT_DATA, (used * 1024 + GIGABYTE, -1))
    signal.alarm(60 * LONGEST_MINUTES)
    sys.addaudithook(hook)
    code = 0
    with ExitStack() as stack:
        if words[0] == "FULL":
            stack.enter_context(breaking(room, Breakage(0, "full from then on")))
            words = words[1:]
        elif words[0] == "ASCII":
            sys.stdout.reconfigure(encoding="ascii", errors="strict")
            words = words[1:]
        try:
            run_guarded(app, words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def at_once(room: Path, commands: list[Words]) -> list[Seen]:
    """Run commands beside each other."""
    found: list[Seen] = []
    threads = [
        threading.Thread(target=lambda words=words: found.append(watch(room, words))) for words in commands
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def belongings(room: Path) -> dict[str, object]:
    """What is a user's: everything outside the model and the runs, and whatever says so inside of them."""
    found: dict[str, object] = {}
    for parent, folders, names in os.walk(room):
        for name in (*folders, *names):
            path = Path(parent) / name
            place = os.path.relpath(path, room)
            if path.is_symlink():
                found[place] = os.readlink(path)
            elif path.is_file():
                is_ours = place.startswith(("model/", "out/", "made/"))
                with path.open("rb") as file:  # of a file that claims to be huge, the beginning
                    data = file.read(1 << 16)
                if not is_ours or data.startswith(MINE):
                    found[place] = (path.stat().st_size, data)
    return found


# ---- the attacks --------------------------------------------------------------------------------

ATTACKS: dict[str, Attack] = {}
LEARN = ["--method", "ncm", "--encoder", "encoder", "--device", "cpu"]
BENCH = [
    "bench",
    "--method",
    "ncm",
    "--encoder",
    "encoder",
    "--device",
    "cpu",
    "--out",
    "out",
    "--tasks",
    "2",
]


def attack(function: Attack) -> Attack:
    ATTACKS[function.__name__] = function
    return function


def mine(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(MINE)
    return path


CHANGES = [
    ["learn", "model", "more.csv", "--device", "cpu", "--accept"],
    ["classes", "rename", "model", "fruit", "food"],
    ["classes", "remove", "model", "vehicle", "--purge", "--yes"],
    ["history", "model", "--keep-last", "1"],
]


@attack
def a_folder_with_a_readme_of_its_own(room: Path) -> list[Words]:
    mine(room / "p/README.md")
    return [["learn", "p", "a.csv", "--method", "instnat"], ["learn", "p", "a.csv", *LEARN]]


@attack
def a_folder_with_blobs_of_its_own(room: Path) -> list[Words]:
    mine(room / "q/blobs/thesis.tex")
    return [["classes", "remove", "q", "x"], ["learn", "q", "a.csv", *LEARN], ["rollback", "q", "1"]]


@attack
def files_of_a_user_in_a_model(room: Path) -> list[Words]:
    for name in ("blobs/thesis.tex", f"blobs/{'0' * 64}.json", "revisions/notes.json", ".part-mine", "notes"):
        mine(room / "model" / name)
    return CHANGES


@attack
def a_lock_that_leads_to_a_diary(room: Path) -> list[Words]:
    (room / "model/lock").unlink()
    (room / "model/lock").symlink_to(mine(room / "diary.txt"))
    return CHANGES


@attack
def blobs_that_lead_to_something_precious(room: Path) -> list[Words]:
    shutil.move(room / "model/blobs", room / "precious")
    (room / "model/blobs").symlink_to(room / "precious")
    mine(room / "precious/thesis.tex")
    return CHANGES


@attack
def a_pointer_and_records_that_are_links(room: Path) -> list[Words]:
    shutil.move(room / "model/current.json", room / "current.json")
    (room / "model/current.json").symlink_to(room / "current.json")
    shutil.move(room / "model/revisions", room / "revisions")
    (room / "model/revisions").symlink_to(room / "revisions")
    return CHANGES


@attack
def files_of_a_user_among_runs(room: Path) -> list[Words]:
    run = room / "out/tickets/ncm/round-0"
    for name in (
        "checkpoint-3/thesis.tex",
        "representations/notes.txt",
        "analysis-mine.svg",
        "tracking/notes",
    ):
        mine(run / name)
    mine(room / "out/tables/mine.md")
    command = [*BENCH, "--benchmark", "tickets.csv"]
    return [command, [*command, "--fresh"], ["report", "out"]]


@attack
def a_report_of_a_user(room: Path) -> list[Words]:
    mine(room / "out/report.html")
    return [["report", "out"]]


@attack
def tables_that_lead_elsewhere(room: Path) -> list[Words]:
    (room / "elsewhere").mkdir()
    (room / "out/tables").symlink_to(room / "elsewhere")
    return [["report", "out"]]


@attack
def code_beside_an_encoder(room: Path) -> list[Words]:
    (room / "encoder/evil.py").write_text("open('sprung', 'w')\nclass Evil: pass\nEvilConfig = Evil\n")
    for file in ("config.json", "tokenizer_config.json"):
        change(
            room / "encoder" / file, lambda values: values.update(auto_map=OWN_CODE, tokenizer_class="Evil")
        )
    return [["learn", "made", "a.csv", *LEARN], [*BENCH, "--benchmark", "tickets.csv", "--fresh"]]


@attack
def a_model_that_starts_over_from_an_encoder_of_its_own(room: Path) -> list[Words]:
    options = {"settings": cheap_settings("joint"), "holdout_per_class": 0, "device": "cpu"}
    classifier = ContinualClassifier("joint", str(room / "encoder"), **options)
    classifier.fit(*toy("fruit", "vehicle")).save(room / "made")
    forge(room / "made", lambda record: record["contents"]["encoder"].update(name="evil/model"))
    (room / "encoder/evil.py").write_text("open('sprung', 'w')\n")
    return [["learn", "made", "more.csv", "--device", "cpu"], ["predict", "made", "a red apple"]]


def encoder(**values: Any) -> Attack:
    def prepare(room: Path) -> list[Words]:
        configured(room / "encoder", **values)
        return [["learn", "made", "a.csv", *LEARN]]

    return prepare


ATTACKS["a kernel loader for attention"] = encoder(_attn_implementation="evil/kernel:attention")
ATTACKS["a backbone from the network"] = encoder(model_type="detr", backbone="evil/backbone")
ATTACKS["a quantization of its own"] = encoder(quantization_config={"quant_method": "evil"})
ATTACKS["ten million layers"] = encoder(num_hidden_layers=10**7)
ATTACKS["no heads"] = encoder(num_attention_heads=0)
ATTACKS["another type of model"] = encoder(model_type="electra")
ATTACKS["words of the configuration"] = encoder(hidden_size="many", vocab_size=[1])


@attack
def weights_under_other_names(room: Path) -> list[Words]:
    path = room / "encoder/model.safetensors"
    save_file({f"other.{name}": tensor for name, tensor in load_file(path).items()}, path)
    return [["learn", "made", "a.csv", *LEARN]]


@attack
def a_layer_without_weights(room: Path) -> list[Words]:
    path = room / "encoder/model.safetensors"
    save_file({name: one for name, one in load_file(path).items() if "layer.1." not in name}, path)
    return [["learn", "made", "a.csv", *LEARN]]


@attack
def weights_of_four_hundred_gigabytes(room: Path) -> list[Words]:
    sparse_weights(room / "encoder")
    return [["learn", "made", "a.csv", *LEARN]]


@attack
def a_pickle_in_place_of_weights(room: Path) -> list[Words]:
    (room / "encoder/model.safetensors").unlink()
    (room / "encoder/pytorch_model.bin").write_bytes(b"cos\nmkdir\n(S'sprung'\ntR.")
    return [["learn", "made", "a.csv", *LEARN]]


def tokenizer(how: Callable[[dict[str, Any]], object]) -> Attack:
    def prepare(room: Path) -> list[Words]:
        change(room / "encoder/tokenizer.json", how)
        return [["learn", "made", "a.csv", *LEARN]]

    return prepare


ATTACKS["a normalizer that doubles 34 times"] = tokenizer(lambda one: one.update(normalizer=doubling(34)))
ATTACKS["a charsmap that makes Rust panic"] = tokenizer(
    lambda one: one.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"})
)
ATTACKS["a list in place of a vocabulary"] = tokenizer(lambda one: one["model"].update(vocab=[[]]))


@attack
def groups_labeled_by_hand(room: Path) -> list[Words]:
    mine(room / "groups.csv")
    discover = ["discover", "model", "a.csv", "--threshold", "1", "--device", "cpu"]
    (room / "link.csv").symlink_to(room / "groups.csv")
    return [
        discover,
        [*discover, "--output", "link.csv", "--force"],
        [*discover, "--output", "a.csv", "--force"],
        ["FULL", *discover, "--output", "new.csv"],
    ]


def data(name: str, content: bytes) -> Attack:
    def prepare(room: Path) -> list[Words]:
        (room / name).write_bytes(content)
        command = [*BENCH, "--benchmark", name, "--fresh"]
        return [["learn", "made", name, *LEARN], command, ["evaluate", "model", name, "--device", "cpu"]]

    return prepare


ATTACKS["two columns of one name"] = data("b.csv", b"text,text,label\na,b,c\n")
ATTACKS["two entries of one name"] = data("b.jsonl", b'{"text": "a", "text": "b", "label": "c"}\n')
ATTACKS["a cell of nine megabytes"] = data("b.csv", b"text,label\n\x1b[2J" + b"x" * 9_000_000 + b",\n")
ATTACKS["a quote that is never closed"] = data("b.csv", b'text,label\n"' + b"x" * 25_000_000)
ATTACKS["half a character"] = data("b.jsonl", b'{"text": "a", "label": "\\ud800"}\n' * 9)
ATTACKS["a label of five thousand digits"] = data("b.jsonl", b'{"text": "a", "label": ' + b"9" * 5000 + b"}")
ATTACKS["ten thousand brackets"] = data("b.jsonl", b'{"text": "a", "label": ' + b"[" * 10_000)
ATTACKS["bytes that are no text"] = data("b.csv", b"text,label\n\xff\xfe,x\n")
ATTACKS["a data file whose name leads out"] = data("...csv", b"text,label\na,b\nc,d\n" * 9)
STEERING = [b'text %d,"\x1b[2J\nclass %d"' % (number, number % 3) for number in range(30)]
ATTACKS["a label that steers a terminal"] = data("b.csv", b"\n".join([b"text,label", *STEERING]))


@attack
def a_data_file_of_the_longest_name(room: Path) -> list[Words]:
    name = "ü" * 95 + " " * 5 + ".csv"
    shutil.copy(room / "tickets.csv", room / name)
    return [[*BENCH, "--benchmark", name], ["report", "out"]]


def parquet(write: Callable[[Path], object]) -> Attack:
    def prepare(room: Path) -> list[Words]:
        write(room / "b.parquet")
        return [["learn", "made", "b.parquet", *LEARN], ["predict", "model", "--file", "b.parquet"]]

    return prepare


def late_date(path: Path) -> None:
    pq.write_table(pa.table({"text": ["a"], "label": pa.array([2**62], pa.timestamp("ns"))}), path)


ATTACKS["a Parquet file that unpacks to 40 GB"] = parquet(dictionary_bomb)
ATTACKS["a Parquet file of three million rows"] = parquet(rows_bomb)
ATTACKS["a date beyond all calendars"] = parquet(late_date)


@attack
def settings_beyond_all_machines(room: Path) -> list[Words]:
    values = ["features=1000000", "features=1" + "0" * 900, "ridge=inf", "features=" + "[" * 5000, "maps=-1"]
    learn = ["learn", "made", "a.csv", "--method", "instant", "--encoder", "encoder", "--device", "cpu"]
    return [[*learn, "--set", value] for value in values]


@attack
def a_sparse_file_of_sixty_gigabytes_in_a_model(room: Path) -> list[Words]:
    size = 60 * GIGABYTE
    name = f"{'a' * 64}.safetensors"
    with (room / "model/blobs" / name).open("wb") as file:
        file.truncate(size)

    def swap(record: dict[str, Any]) -> None:
        tensors = record["contents"]["tensors"]
        tensors[next(iter(tensors))] = {"file": name, "bytes": size}

    forge(room / "model", swap)
    return [["predict", "model", "a"], ["rollback", "model", "1"], ["history", "model"], *CHANGES[:1]]


def record(how: Callable[[dict[str, Any]], object]) -> Attack:
    def prepare(room: Path) -> list[Words]:
        forge(room / "model", lambda whole: how(whole["contents"]))
        return [["predict", "model", "a"], ["history", "model"], ["classes", "model"], *CHANGES[:2]]

    return prepare


ATTACKS["a temperature of zero"] = record(lambda one: one["calibration"].update(temperature=0))
ATTACKS["a temperature below zero"] = record(lambda one: one["calibration"].update(temperature=-1))
ATTACKS["two classes of one name"] = record(lambda one: one["classes"].append(one["classes"][0]))
ATTACKS["parameters that are a word"] = record(lambda one: one.update(parameters="abc"))
ATTACKS["number labels that are words"] = record(lambda one: one.update(label_type="number"))
ATTACKS["a method that does not exist"] = record(lambda one: one.update(method="evil"))
ATTACKS["a class that steers a terminal"] = record(lambda one: one["classes"][0].update(name="\x1b[2J\n"))


def model_file(name: str, content: bytes) -> Attack:
    def prepare(room: Path) -> list[Words]:
        (room / "model" / name).write_bytes(content)
        return [["predict", "model", "a"], ["history", "model"], *CHANGES[:1]]

    return prepare


ATTACKS["a pointer that counts wildly"] = model_file(
    "current.json", b'{"format": 1, "sha256": "", "record": {"revision": 1, "last": 999999999}}'
)
ATTACKS["a pointer of brackets"] = model_file("current.json", b"[" * 100_000)
ATTACKS["a record of brackets"] = model_file("revisions/000001.json", b'{"a":' * 100_000)
ATTACKS["a record that is empty"] = model_file("revisions/000001.json", b"")


def run_file(name: str, content: bytes) -> Attack:
    def prepare(room: Path) -> list[Words]:
        path = room / "out/demo/fea/round-0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return [["report", "out"], ["analyze", "out/demo/fea/round-0"]]

    return prepare


for _name in ("result.json", "predictions.jsonl.gz", "analysis.json", "wrong-texts.json.gz"):
    ATTACKS[f"brackets in {_name}"] = run_file(_name, b"[" * 100_000)
    ATTACKS[f"half a character in {_name}"] = run_file(_name, b'{"format": 1, "fingerprint": "\\ud800"}')
    ATTACKS[f"a list in {_name}"] = run_file(_name, b"[[1]]")


ATTACKS["predictions that unpack to gigabytes"] = run_file(
    "predictions.jsonl.gz", gzip.compress(bytes(GIGABYTE // 64)) * 256
)


@attack
def a_result_that_was_edited(room: Path) -> list[Words]:
    path = room / "out/demo/fea/round-0/result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"final_accuracy": 0.999}))
    return [["report", "out"]]


@attack
def a_checkpoint_that_leads_out(room: Path) -> list[Words]:
    for name in ("checkpoint-1", "checkpoint-x"):
        path = room / "out/tickets/ncm/round-0" / name / "progress.json"
        path.parent.mkdir(parents=True)
        path.write_text(
            json.dumps({"fingerprint": "x", "keep": "../../..", "predictions": [], "seconds": []})
        )
    command = [*BENCH, "--benchmark", "tickets.csv"]
    return [command, [*command, "--fresh"]]


def preset(content: bytes) -> Attack:
    def prepare(room: Path) -> list[Words]:
        (room / "p.toml").write_bytes(content)
        return [[*BENCH, "--benchmark", "tickets.csv", "--fresh", "--preset", "p.toml"]]

    return prepare


ATTACKS["a preset that extends itself"] = preset(b'extends = "p.toml"\n')
ATTACKS["a preset that is no text"] = preset(b'encoder = "\xe9"\n')
ATTACKS["a preset of wrong types"] = preset(b"methods = 3\n")
ATTACKS["a preset with a number as encoder"] = preset(b"encoder = 5\n")
ATTACKS["a preset of brackets"] = preset(b"encoder = " + b"[" * 3000)


def instead(name: str, put: Callable[[Path], object]) -> Attack:
    """Something that is no file of a usual size in place of one that a run has written."""

    def prepare(room: Path) -> list[Words]:
        path = room / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        put(path)
        bench = [*BENCH, "--benchmark", "tickets.csv"]
        return [["report", "out"], ["analyze", "out/demo/fea/round-0"], bench]

    return prepare


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(60 * GIGABYTE)


PLACES = {
    "result.json": "demo/fea/round-0/result.json",
    "predictions.jsonl.gz": "demo/fea/round-0/predictions.jsonl.gz",
    "analysis.json": "demo/fea/round-0/analysis.json",
    "progress.json": "tickets/ncm/round-0/checkpoint-1/progress.json",
    "recipes.json": "recipes.json",
    "report.html": "report.html",
}
for _name, _place in PLACES.items():
    ATTACKS[f"a pipe for {_name}"] = instead(_place, os.mkfifo)
    ATTACKS[f"a link to endless zeros for {_name}"] = instead(
        _place, lambda path: path.symlink_to("/dev/zero")
    )
    ATTACKS[f"sixty gigabytes of {_name}"] = instead(_place, sparse)


@attack
def notes_of_a_user_where_failures_are_explained(room: Path) -> list[Words]:
    mine(room / "out/tickets-ncm-round-0.error.txt")
    return [[*BENCH, "--benchmark", "tickets.csv"], [*BENCH, "--benchmark", "tickets.csv", "--fresh"]]


ORDERS = {"a.json": b"[" * 100_000, "a.txt": b"[" * 100_000, "b.json": b"9" * 6000, "c.json": b'["\\ud800"]'}


@attack
def orders_of_classes_that_are_none(room: Path) -> list[Words]:
    for name, content in ORDERS.items():
        (room / name).write_bytes(content)
    sparse(room / "d.json")
    command = [*BENCH, "--benchmark", "tickets.csv", "--fresh", "--class-order"]
    return [[*command, name] for name in (*ORDERS, "d.json", "/dev/zero", "x" * 300)]


TUNE = [
    *("tune", "--method", "instant", "--encoder", "encoder", "--device", "cpu", "--out", "out/tune"),
    *(
        "--trials",
        "1",
        "--tasks",
        "3",
        "--workers",
        "1",
        "--set",
        "features=40",
        "--benchmark",
        "tickets.csv",
    ),
]
SPACES = {
    "a.toml": b"all = " + b"[" * 5000,
    "b.toml": b"\xff\xfe",
    "c.toml": b"[methods]\ninstant = 3\n",
    "d.toml": b"[all]\nridge = {low = 1, high = " + b"9" * 5000 + b"}\n",
}


@attack
def ranges_of_settings_that_are_none(room: Path) -> list[Words]:
    for name, content in SPACES.items():
        (room / name).write_bytes(content)
    sparse(room / "e.toml")
    return [[*TUNE, "--space", name] for name in (*SPACES, "e.toml", "/dev/zero", "x" * 300)]


@attack
def files_of_a_user_in_a_search(room: Path) -> list[Words]:
    for name in ("thesis.tex", "trial-000/notes", "trial-x/notes"):
        mine(room / "out/tune/instant-tickets" / name)
    return [TUNE, [*TUNE, "--fresh"]]


@attack
def a_preset_and_a_database_of_a_user_in_place_of_those_of_a_search(room: Path) -> list[Words]:
    mine(room / "out/tune/instant-tickets.toml")
    mine(room / "out/other/instant-tickets/trials.db")
    other = [*TUNE, "--out", "out/other"]
    return [TUNE, [*TUNE, "--fresh"], other, [*other, "--fresh"]]


@attack
def a_search_that_leads_elsewhere(room: Path) -> list[Words]:
    mine(room / "elsewhere/notes")
    (room / "elsewhere/trials.db").write_bytes(b"")
    (room / "out/tune").mkdir()
    (room / "out/tune/instant-tickets").symlink_to(room / "elsewhere")
    return [TUNE, [*TUNE, "--fresh"]]


@attack
def a_device_that_keeps_no_numbers(room: Path) -> list[Words]:
    return [["predict", "model", "a", "--device", name] for name in ("meta", "cuda:99", "evil", "")]


@attack
def strange_paths(room: Path) -> list[Words]:
    names = ["x" * 300, "x" * 5000, "n\udcffwhere", "a\nb", "\x1b[31m", "a.csv/b", "/dev/full"]
    return [
        [*command, name] for name in names for command in (["history"], ["predict", "--file"], ["report"])
    ]


@attack
def a_disk_that_is_full(room: Path) -> list[Words]:
    report = ["FULL", "report", "out"]
    return [["FULL", "learn", "made", "a.csv", *LEARN], report, *(["FULL", *words] for words in CHANGES)]


# ---- commands that ask, undo, export and serve --------------------------------------------------

ASK = [["suggest", "model"], ["drift", "model"], ["discover", "model", "--threshold", "1", "--force"]]
FORGET = ["forget", "model"]
SERVE = ["serve", "model", "--device", "cpu", "--port", "0"]
TEACHING = [*SERVE, "--token-file", "token"]


def asked(name: str, content: bytes) -> Attack:
    """A file of texts, for all commands that read one."""

    def prepare(room: Path) -> list[Words]:
        (room / name).write_bytes(content)
        forget, improve = [*FORGET, name], ["improve", "model", "--data", name, "--device", "cpu"]
        return [
            *([*words, name] for words in ASK),
            ["drift", "model", "a.csv", "--reference", name],
            forget,
            improve,
        ]

    return prepare


ATTACKS["texts that are no text"] = asked("b.txt", b"\xff\xfe\x00\xd8" + bytes(range(256)) * 9)
ATTACKS["a line of twenty-five megabytes"] = asked("b.txt", b"x" * 25_000_000)
ATTACKS["half a character among texts"] = asked("b.jsonl", b'{"text": "a \\udfff", "label": "fruit"}\n' * 3)
ATTACKS["spans that are not in their texts"] = asked(
    "b.jsonl", b'{"text": "a", "label": "x", "trigger": [0, 99]}\n{"text": "b", "label": "y"}\n'
)
ATTACKS["texts that steer a terminal"] = asked(
    "b.csv", b"text,label\n\x1b[2J\x9b2J\xe2\x80\xae,\x1b]0;x\x07\n" * 9
)


def unpacked(**parts: bytes) -> Attack:
    """A workbook with parts of a stranger, for all commands that read one."""
    return asked("b.xlsx", workbook(**parts))


SHEET, SHARED, LINKS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/_rels/workbook.xml.rels"
ENTITIES = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
ATTACKS["a workbook with files of its own"] = unpacked(
    **{SHARED: ENTITIES + b"<sst><si><t>&a;</t></si></sst>"}
)
ATTACKS["a workbook that leads to the network"] = unpacked(
    **{LINKS: WORKBOOK[LINKS].replace("worksheets/sheet1.xml", "http://evil.example/x").encode()}
)
ATTACKS["a workbook that leads out"] = unpacked(
    **{LINKS: WORKBOOK[LINKS].replace("worksheets/sheet1.xml", "../../../notes.txt").encode()}
)
ATTACKS["a workbook of the last row and column"] = unpacked(
    **{SHEET: WORKBOOK[SHEET].replace('r="A2"', 'r="XFD1048576"').encode()}
)
ATTACKS["a workbook of sixty megabytes in a cell"] = unpacked(
    **{SHEET: WORKBOOK[SHEET].replace("Hello", "x" * 60_000_000).encode()}
)
ATTACKS["a workbook that is none"] = asked("b.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4096))


@attack
def texts_that_never_end_or_are_elsewhere(room: Path) -> list[Words]:
    (room / "endless.txt").symlink_to("/dev/zero")
    (room / "folder.csv").mkdir()
    names = ["endless.txt", "folder.csv", "x" * 300 + ".csv", "n\udcff.txt", ""]
    return [[*words, name] for name in names for words in (*ASK, FORGET)]


@attack
def outputs_that_are_links_or_a_users(room: Path) -> list[Words]:
    mine(room / "own.csv")
    (room / "link.csv").symlink_to(room / "own.csv")
    suggest = ["suggest", "model", "a.csv", "--output"]
    names = ["own.csv", "link.csv", "a.csv", ".", "/dev/full", "none/x.csv", "x" * 300]
    return [
        [*suggest, "own.csv"],
        *([*suggest, name, "--force"] for name in names[1:]),
        ["FULL", *suggest, "new.csv"],
    ]


@attack
def a_terminal_that_knows_no_accents(room: Path) -> list[Words]:
    write_csv(room / "é.csv", ["größe 👟", "naïve café"], ["größe", "place"])
    learn = ["learn", "made", "é.csv", *LEARN]
    asking = [["ASCII", *words, "é.csv"] for words in (*ASK, FORGET)]
    return [["ASCII", *learn], *asking, ["ASCII", "predict", "made", "größe"], ["ASCII", "history", "made"]]


@attack
def files_of_a_user_where_a_service_keeps_its_own(room: Path) -> list[Words]:
    for name in (".part-mine", ".part-0123456789ab-thesis.tex", "thesis.tex"):
        mine(room / "model/service" / name)
    (room / "model/service/collected.json").write_bytes(b"[" * 100_000)  # and the service does not start
    return [TEACHING, *CHANGES]


@attack
def a_service_that_leads_elsewhere(room: Path) -> list[Words]:
    mine(room / "precious/thesis.tex")
    mine(room / "precious/.part-0123456789ab-jobs.json")
    (room / "model/service").symlink_to(room / "precious")
    return [TEACHING, [*TEACHING, "--collect"], *CHANGES]


@attack
def collected_texts_that_are_elsewhere_or_endless(room: Path) -> list[Words]:
    (room / "model/service").mkdir()
    (room / "model/service/collected.json").symlink_to(mine(room / "diary.txt"))
    return [TEACHING, *CHANGES, ["history", "model"]]


@attack
def a_lock_of_a_service_that_leads_to_a_diary(room: Path) -> list[Words]:
    (room / "model/service").mkdir()
    (room / "model/service/lock").symlink_to(mine(room / "diary.txt"))
    return [TEACHING]


@attack
def tokens_that_are_none(room: Path) -> list[Words]:
    (room / "binary").write_bytes(bytes(range(256)))
    (room / "long").write_bytes(b"x" * 10_000_000)
    (room / "empty").write_bytes(b"")
    (room / "loop").symlink_to(room / "loop")
    names = ["binary", "long", "empty", "loop", "encoder", "/dev/zero", "none", "x" * 300]
    return [[*SERVE, "--token-file", name] for name in names]


@attack
def addresses_that_are_none(room: Path) -> list[Words]:
    return [
        [*SERVE, "--host", host] for host in ("", "0.0.0.0", "a b", "\x1b[2J", "x" * 300, "n\udcff", "::")
    ]


def export_record(content: bytes) -> Attack:
    return model_file("export.json", content)


ATTACKS["an export of brackets"] = export_record(b"[" * 100_000)
ATTACKS["an export that is half a character"] = export_record(b'{"format": 1, "record": "\\ud800"}')
ATTACKS["an export of the next century"] = export_record(b'{"format": 99, "sha256": "", "record": {}}')


@attack
def an_export_that_is_elsewhere(room: Path) -> list[Words]:
    (room / "model/export.json").symlink_to(mine(room / "diary.txt"))
    return [["predict", "model", "a"], ["export", "model"], *CHANGES]


def second_graph(put: Callable[[Path], object]) -> Attack:
    """An int8 export that doubts every text, and something else where its second graph was."""

    def prepare(room: Path) -> list[Words]:
        folder = ModelFolder(room / "model")
        with folder.lock("exporting"):
            export_model(folder, precision="int8")
        doubt_everything(room / "model")
        graph = room / "model/blobs" / export_of(room / "model")["second"]["graph"]["file"]
        graph.unlink()
        put(graph)
        return [["predict", "model", "a"], ["export", "model", "--int8"], ["predict", "model", "a"], *CHANGES]

    return prepare


ATTACKS["a second graph that is not there"] = second_graph(lambda path: None)
ATTACKS["a second graph that is a diary"] = second_graph(
    lambda path: path.symlink_to(mine(path.parents[2] / "d"))
)
ATTACKS["a second graph that never ends"] = second_graph(sparse)
ATTACKS["a second graph that is a pipe"] = second_graph(os.mkfifo)


@attack
def an_export_on_a_full_disk(room: Path) -> list[Words]:
    return [["FULL", "export", "model"], ["predict", "model", "a"]]


@attack
def settings_of_a_duet_that_are_none(room: Path) -> list[Words]:
    values = ["trained=duet", "trained=../../x", "trained=" + "[" * 5000, "x=1", "trained=1" + "0" * 900, "="]
    return [["improve", "model", "--set", value, "--device", "cpu"] for value in values]


@attack
def a_refused_update_of_a_stranger(room: Path) -> list[Words]:
    """A record that says it was refused, and leads to a revision that is a link."""
    shutil.copy(room / "model/revisions/000002.json", room / "other.json")
    (room / "model/revisions/000003.json").symlink_to(room / "other.json")
    forge(room / "model", lambda whole: whole["updates"][0].update(reasons=["x" * 100_000], is_refused=True))
    return [["accept", "model"], ["discard", "model"], ["history", "model"]]


@attack
def a_model_of_a_user_where_the_demo_keeps_its_own(room: Path) -> list[Words]:
    shutil.move(room / "model", room / "desk")
    return [["demo", "--out", "."]]


def label_cells(content: bytes) -> Attack:
    """Labels of a stranger for a model that gives several of them."""

    def prepare(room: Path) -> list[Words]:
        (room / "b.jsonl").write_bytes(content)
        learn = ["learn", "made", "b.jsonl", "--multilabel", *LEARN]
        return [learn, ["evaluate", "model", "b.jsonl", "--device", "cpu"], [*FORGET, "b.jsonl"]]

    return prepare


def labeled(label: bytes) -> bytes:
    return b"".join(b'{"text": "a %d", "label": %s}\n' % (number, label) for number in range(9))


ATTACKS["labels within labels"] = label_cells(labeled(b'[["a"], {"b": 1}]'))
ATTACKS["labels without an end"] = label_cells(labeled(b'"' + b"|" * 100_000 + b'"'))
ATTACKS["a hundred thousand labels of a text"] = label_cells(
    labeled(b'"' + b"|".join(b"l%d" % number for number in range(100_000)) + b'"')
)
ATTACKS["half characters as labels"] = label_cells(labeled(b'["\\ud800", "\\udfff"]'))
ATTACKS["labels that steer a terminal"] = label_cells(labeled(b'["\\u001b[2J", "b\\n"]'))


# ---- the whole list -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def furnished(tmp_path_factory) -> Path:
    """A room with an encoder, data, a model of two revisions, and runs."""
    room = tmp_path_factory.mktemp("attacks") / "furnished"
    room.mkdir()
    save_tiny_encoder(room / "encoder")
    classifier = ContinualClassifier(
        "ncm", str(room / "encoder"), holdout_per_class=1, tolerance=1, device="cpu"
    )
    for topics in (("fruit", "vehicle"), ("place",)):
        classifier.partial_fit(*toy(*topics, texts=6)).save(room / "model")
    for name, topics in (("a.csv", ("fruit", "weather")), ("more.csv", ("weather",))):
        write_csv(room / name, *toy(*topics, texts=5))
    write_csv(room / "tickets.csv", *toy("fruit", "vehicle", "weather", "place", texts=6))
    write_grid(room / "out", {"fea": 0.8}, rounds=1, tasks=2)
    mine(room / "notes.txt")
    (room / "token").write_text("t" * 40)  # without one a service only answers, and so it would start
    return room


def write_csv(path: Path, texts: list[str], labels: list[str]) -> None:
    rows = [f"{text},{label}" for text, label in zip(texts, labels, strict=True)]
    path.write_text("\n".join(["text,label", *rows]) + "\n")


@contextmanager
def prepared(furnished: Path, name: str) -> Iterator[tuple[Path, list[Words]]]:
    room = furnished.parent / "room"
    shutil.copytree(furnished, room, symlinks=True)
    try:
        yield room, ATTACKS[name](room)
    finally:
        shutil.rmtree(room)


def judge(room: Path, before: dict[str, object], seen: list[tuple[Words, Seen]]) -> dict[str, list[str]]:
    """What a list of commands has to answer for."""
    after = belongings(room)
    lost = [place for place in before if after.get(place) != before[place]]
    found: dict[str, list[str]] = {
        "lost or foreign files touched": lost + ["sprung"] * (room / "sprung").exists(),
        "executions": [text for _, one in seen for text in one.executed],
        "network tries": [text for _, one in seen for text in one.network],
        "tracebacks": [],
    }
    for words, one in seen:
        if one.code not in (0, 2, 3) or "Traceback" in one.said or "\x1b[2J" in one.said:
            found["tracebacks"].append(f"{words}: {one.code}: {one.said[-2000:]}")
    return found


def play(furnished: Path, name: str) -> tuple[int, dict[str, list[str]]]:
    with prepared(furnished, name) as (room, commands):
        before = belongings(room)
        seen = [(words, watch(room, words)) for words in commands]
        return len(commands), judge(room, before, seen)


FEW = ["a_folder_with_a_readme_of_its_own", "code_beside_an_encoder", "a temperature of zero"]


@pytest.mark.parametrize("name", FEW)
def test_some_attacks_come_to_nothing(furnished, name):
    assert not any(play(furnished, name)[1].values())


@pytest.mark.slow
def test_the_whole_attack_list_comes_to_nothing(furnished, capsys):
    found: dict[str, list[str]] = {}
    commands = 0
    for name in ATTACKS:
        count, answers = play(furnished, name)
        commands += count
        for what, cases in answers.items():
            found.setdefault(what, []).extend(f"{name}: {case}" for case in cases)
    with capsys.disabled():
        counts = ", ".join(f"{len(cases)} {what}" for what, cases in found.items())
        sys.stdout.write(f"\n{len(ATTACKS)} attacks, {commands} commands: {counts}\n")
    assert not any(found.values()), json.dumps(found, indent=1)


@pytest.mark.slow
def test_reports_and_equal_grids_at_once_do_not_harm_each_other(furnished):
    room = furnished.parent / "together"
    shutil.copytree(furnished, room)
    before = belongings(room)
    grid = [*BENCH, "--benchmark", "tickets.csv"]
    seen = at_once(room, [["report", "out"], ["report", "out"], grid, grid, ["report", "out"]])
    assert [one.code for one in seen] == [0] * 5, [one.said[-500:] for one in seen]
    assert not any(judge(room, before, [([], one) for one in seen]).values())


def test_the_commands_work_where_nothing_is_hostile(furnished):
    """Or a list of refusals would prove nothing."""
    ATTACKS["nothing"] = lambda room: [
        *CHANGES,
        ["rollback", "model", "5"],
        ["learn", "made", "a.csv", *LEARN],
        [*BENCH, "--benchmark", "tickets.csv", "--fresh"],
        ["report", "out"],
        ["evaluate", "model", "a.csv", "--device", "cpu"],
        ["predict", "model", "--file", "a.csv"],
        ["discover", "model", "a.csv", "--threshold", "1", "--device", "cpu"],
        ["classes", "model"],
    ]
    try:
        with prepared(furnished, "nothing") as (room, commands):
            seen = [watch(room, words) for words in commands]
            assert [one.code for one in seen] == [0] * len(commands), [one.said for one in seen]
            assert (room / "groups.csv").exists()
            assert (room / "out/tickets/ncm/round-0/result.json").exists()
    finally:
        del ATTACKS["nothing"]


# ---- the watch itself ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import socket; socket.create_connection(('127.0.0.1', 1))", "network tries"),
        ("import os; os.system('true')", "executions"),
        ("import pickle; pickle.loads(b'cos\\nmkdir\\n.')", "executions"),
        ("open('notes.txt', 'w')", "lost or foreign files touched"),
        ("import os; os.remove('notes.txt')", "lost or foreign files touched"),
        ("open('sprung', 'w')", "lost or foreign files touched"),
        ("1 / 0", "tracebacks"),
    ],
)
def test_the_watch_sees_what_it_is_there_for(furnished, monkeypatch, code, what):
    def careless(_: Callable[..., object], __: Words) -> None:
        exec(compile(code, "command", "exec"))

    monkeypatch.setattr(sys.modules[__name__], "run_guarded", careless)
    ATTACKS["careless"] = lambda room: [["command"]]
    try:
        found = play(furnished, "careless")[1]
    finally:
        del ATTACKS["careless"]
    assert found[what]
