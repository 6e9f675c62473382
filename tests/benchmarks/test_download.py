"""Fetching files from a server that behaves, cuts the connection, sends another file, or is not there."""

import hashlib
import random
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from repcl.benchmarks import BENCHMARKS
from repcl.benchmarks.base import Benchmark, SourceFile
from repcl.benchmarks.download import ATTEMPTS, fetch
from repcl.errors import InvalidData, MissingData

CONTENT = random.Random(0).randbytes(200_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Server:
    """A local server and what it was told to do.

    Attributes:
        cuts: bytes after which the next answers break off.
        ranges: the `Range` headers that came in.
    """

    url: str = ""
    status: int = 200
    content: bytes = CONTENT
    cuts: list[int] = field(default_factory=list)
    resumes: bool = True
    ranges: list[str | None] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    behavior = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers["Range"]
            behavior.ranges.append(asked)
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and behavior.resumes else 0
            if behavior.status != 200 or start >= len(behavior.content):
                self.send_error(behavior.status if behavior.status != 200 else 416)
                return
            body = behavior.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: behavior.cuts.pop(0)] if behavior.cuts else body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    behavior.url = f"http://127.0.0.1:{listening.server_address[1]}/data.bin"
    yield behavior
    listening.shutdown()
    thread.join()
    listening.server_close()


def benchmark_at(url: str, *, size: int | None = None, digest: str | None = None) -> Benchmark:
    return replace(BENCHMARKS["hwu64"], name="made_up", files=(SourceFile("data.bin", url, size, digest),))


def get(benchmark: Benchmark, folder: Path) -> Path:
    return fetch(benchmark, folder, pause_seconds=0) / "data.bin"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "made_up").iterdir())


def test_a_file_is_fetched_into_the_benchmarks_folder(server: Server, tmp_path: Path) -> None:
    benchmark = benchmark_at(server.url, size=len(CONTENT), digest=f"sha256:{SHA256}")
    assert get(benchmark, tmp_path).read_bytes() == CONTENT
    assert names_in(tmp_path) == ["data.bin"]


def test_progress_ends_at_the_whole_size(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    fetch(benchmark_at(server.url), tmp_path, lambda *step: seen.append(step))
    assert seen[-1] == ("data.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_file_that_is_there_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "made_up").mkdir()
    (tmp_path / "made_up" / "data.bin").write_bytes(b"mine")
    assert get(benchmark_at(server.url), tmp_path).read_bytes() == b"mine"
    assert server.ranges == []


def test_a_connection_that_breaks_off_is_taken_up_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.cuts = [100_000, 50_000]
    assert get(benchmark_at(server.url, digest=f"sha256:{SHA256}"), tmp_path).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=100000-", "bytes=150000-"]


def test_a_stopped_download_goes_on_in_the_next_run(server: Server, tmp_path: Path) -> None:
    server.cuts = [10_000] * ATTEMPTS
    with pytest.raises(MissingData, match=r"the connection ended after 40,000 of 200,000 bytes"):
        get(benchmark_at(server.url), tmp_path)
    assert names_in(tmp_path) == ["data.bin.part"]
    assert get(benchmark_at(server.url), tmp_path).read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=40000-"


def test_a_server_that_cannot_resume_sends_the_whole_again(server: Server, tmp_path: Path) -> None:
    server.cuts, server.resumes = [100_000], False
    assert get(benchmark_at(server.url), tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_file_is_started_over(server: Server, tmp_path: Path) -> None:
    (tmp_path / "made_up").mkdir()
    (tmp_path / "made_up" / "data.bin.part").write_bytes(bytes(300_000))
    assert get(benchmark_at(server.url), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("digest", [f"sha256:{'0' * 64}", f"md5:{'0' * 32}"])
def test_a_file_with_another_hash_is_deleted(server: Server, tmp_path: Path, digest: str) -> None:
    with pytest.raises(
        InvalidData, match=rf"do not have the hash {digest}: the file was deleted; run .* again"
    ):
        get(benchmark_at(server.url, digest=digest), tmp_path)
    assert names_in(tmp_path) == []


def test_a_file_of_another_size_is_deleted(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"sent 200,000 bytes where 7 were expected: the file was deleted"):
        get(benchmark_at(server.url, size=7), tmp_path)
    assert names_in(tmp_path) == []


def test_a_file_that_has_moved_is_asked_for_once_and_named(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(
        MissingData, match=r"answered 404 Not Found: the file has moved; find data\.bin at its"
    ):
        get(benchmark_at(server.url), tmp_path)
    assert len(server.ranges) == 1


def test_a_busy_server_is_asked_again_and_again(server: Server, tmp_path: Path) -> None:
    server.status = 503
    with pytest.raises(MissingData, match=r"503 Service Unavailable"):
        get(benchmark_at(server.url), tmp_path)
    assert len(server.ranges) == ATTEMPTS


def test_without_a_network_the_folder_to_put_files_in_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(
        MissingData, match=rf"Connection refused.*put data\.bin in {tmp_path / 'made_up'} yourself"
    ):
        get(benchmark_at(f"http://127.0.0.1:{port}/data.bin"), tmp_path)


@pytest.mark.parametrize(("name", "where"), [("tacred", "LDC2018T24"), ("maven", "THU-KEG/MAVEN-dataset")])
def test_files_without_a_public_address_are_explained(name: str, where: str, tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=rf"{name} needs .* in {tmp_path / name}: .*{where}"):
        fetch(BENCHMARKS[name], tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MissingData, match=r"Cannot write to .*give another folder"):
        fetch(benchmark_at("http://127.0.0.1:9/data.bin"), tmp_path / "file")


def test_the_demo_corpus_needs_no_fetching(tmp_path: Path) -> None:
    assert fetch(BENCHMARKS["demo"], tmp_path) == BENCHMARKS["demo"].bundled


def test_every_other_benchmark_has_public_addresses() -> None:
    for name in ("fewrel", "hwu64", "clinc150", "banking77"):
        assert all((file.url or "").startswith("https://") for file in BENCHMARKS[name].files)
