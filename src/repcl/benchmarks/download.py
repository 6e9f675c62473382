"""Fetches a benchmark's original files from their public homes: resumes, verifies, writes atomically."""

import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from ssl import SSLError
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from repcl.benchmarks.base import Benchmark, SourceFile
from repcl.benchmarks.stream import digest_state
from repcl.errors import InvalidData, MissingData

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes that are there, and the total bytes where known."""

ATTEMPTS = 4
SILENCE_SECONDS = 30
PIECE = 1 << 16


def fetch(
    benchmark: Benchmark,
    data_dir: str | Path | None = None,
    progress: Progress | None = None,
    *,
    pause_seconds: float = 1.0,
) -> Path:
    """Fetch the original files that are not there yet, and return their folder."""
    folder = benchmark.folder(data_dir)
    missing = benchmark.missing_files(folder)
    files = [file for file in benchmark.files if file.name in missing]
    if any(file.url is None for file in files):
        raise MissingData(f"{benchmark.name} needs {', '.join(missing)} in {folder}: {benchmark.remedy()}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            _fetch_file(file, folder, progress or _silent, pause_seconds)
    except OSError as error:
        raise MissingData(f"Cannot write to {folder} ({error}): give another folder.") from error
    return folder


def _fetch_file(file: SourceFile, folder: Path, progress: Progress, pause_seconds: float) -> None:
    part = folder / f"{file.name}.part"
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _continue(file, part, progress)
            break
        except HTTPError as error:
            error.close()
            _give_up_if_refused(error, file, folder)
            reason: object = f"{error.code} {error.reason}"
        except (URLError, HTTPException, ConnectionError, TimeoutError, SSLError) as error:
            reason = getattr(error, "reason", error)
        if attempt == ATTEMPTS:
            raise MissingData(
                f"Could not fetch {file.url} ({reason}): check the network and run the command again "
                f"(it resumes), or put {file.name} in {folder} yourself."
            )
        time.sleep(pause_seconds * attempt)
    _verify(file, part)
    part.replace(folder / file.name)


def _continue(file: SourceFile, part: Path, progress: Progress) -> None:
    """Append to the part that is there, or start over where the server cannot resume it."""
    if part.is_symlink():
        raise MissingData(f"{part} is a link, and is not written through: remove it.")
    there = part.stat().st_size if part.exists() else 0
    request = Request(file.url or "", headers={"User-Agent": "repcl"})
    if there:
        request.add_header("Range", f"bytes={there}-")
    try:
        response = urlopen(request, timeout=SILENCE_SECONDS)
    except HTTPError as error:
        if error.code == 416:  # nothing follows the part: it is the whole file, or one of another file
            part.unlink(missing_ok=True)
        raise
    with response:
        if response.status != 206:
            there = 0
        _save(response, part, there, lambda done, total: progress(file.name, done, total))


def _save(response: HTTPResponse, part: Path, done: int, progress: Callable[[int, int | None], None]) -> None:
    length = response.headers["Content-Length"]
    total = None if length is None else done + int(length)
    with part.open("ab" if done else "wb") as file:
        while piece := response.read(PIECE):
            file.write(piece)
            done += len(piece)
            progress(done, total)
    if total is not None and done < total:
        raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")


def _give_up_if_refused(error: HTTPError, file: SourceFile, folder: Path) -> None:
    """A server that says no will say it again; one that is busy, or cannot resume, may be asked again."""
    if 400 <= error.code < 500 and error.code not in (408, 416, 429):
        raise MissingData(
            f"{file.url} answered {error.code} {error.reason}: the file has moved; "
            f"find {file.name} at its source and put it in {folder}."
        ) from error


def _verify(file: SourceFile, part: Path) -> None:
    size = part.stat().st_size
    if file.size not in (None, size):
        _discard(file, part, f"{size:,} bytes where {file.size:,} were expected")
    if digest_state(file, part) == "differs":
        _discard(file, part, f"contents that do not have the hash {file.digest}")


def _discard(file: SourceFile, part: Path, found: str) -> None:
    part.unlink()
    raise InvalidData(
        f"{file.url} sent {found}: the file was deleted; run the command again, "
        f"or put the original {file.name} in {part.parent} yourself."
    )


def _silent(name: str, done: int, total: int | None) -> None:
    """Show nothing."""
