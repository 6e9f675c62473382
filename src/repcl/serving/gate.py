"""What every request passes before any route sees it: its host, its token, its size, and how many there are.

It stands outside of the web framework, so that whatever happens inside ends in a problem body, and no word of
a user reaches a log.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Mapping
from hmac import compare_digest
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from repcl.serving.options import ANY_HOST, BODY_BYTES, BODY_SECONDS, READING_SECONDS
from repcl.serving.problems import RETRY_AFTER, UNFORESEEN, Problem
from repcl.serving.service import Service

API = "/v1/"
OPEN = frozenset({"/v1/health", "/v1/ready"})
"""Asked by load balancers, which know neither token nor name; they say nothing about the model."""
READING = frozenset({"/v1/predict", "/v1/evaluate"})
"""Sent with a body, but nothing is changed by them."""
TAKEN_AT_ONCE = 32 << 10
"""Bytes that a connection takes whether they are read or not."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

log = logging.getLogger("repcl.serving")


class _Gone(Exception):
    """Whoever asked is no longer there."""


class Gate:
    """Lets through what may pass.

    Args:
        app: answers what passed.
        service: says what may pass, and counts what was answered.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service
        self.options = options = service.options
        self.metrics = service.metrics
        self._waiting: set[_Answer] = set()
        self._hosts = options.hosts
        self._token = (options.token or "").encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = HEADERS | ({"Cache-Control": "no-store"} if _is_api(scope) else {})
        answer = _Answer(send, headers, self._waiting)
        begun = time.monotonic()
        try:
            await self._let_through(scope, receive, answer)
        except Problem as problem:
            await problem.response(scope, receive, answer)
        except _Gone:
            return
        except Exception as error:
            # what an error says may quote a text, so only its kind and place are written down
            place = traceback.extract_tb(error.__traceback__)[-1]
            log.error("%s at %s:%s", type(error).__name__, place.filename, place.lineno)
            if answer.status is None:
                await UNFORESEEN.response(scope, receive, answer)
        finally:
            seconds = time.monotonic() - begun
            self.metrics.count_request(_known_method(scope), _route(scope), answer.status or 499, seconds)

    async def _let_through(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        if scope["path"] in OPEN:
            await self.app(scope, receive, answer)
            return
        headers = Headers(scope=scope)
        self._check_host(headers)
        self._check_token(scope, headers)
        _check_length(headers)
        if len(self._waiting) >= self.options.waiting:
            raise Problem(503, "Too many requests wait already: try again in a moment.", headers=RETRY_AFTER)
        self._waiting.add(answer)
        try:
            body = b"" if scope["method"] in SAFE_METHODS else await _whole_body(headers, receive)
            await self.app(scope, _once(body, receive), answer)
        finally:
            self._waiting.discard(answer)

    def _check_host(self, headers: Headers) -> None:
        """Refuse names that are not this service's: a page elsewhere may have pointed its own name here."""
        name = _without_port(headers.get("host", "")).lower()
        if ANY_HOST not in self._hosts and name not in self._hosts:
            raise Problem(
                421,
                "The Host header names another service: start this one with --allowed-host for that name.",
            )

    def _check_token(self, scope: Scope, headers: Headers) -> None:
        """Refuse whoever has no token where one is needed."""
        path = scope["path"]
        is_writing = scope["method"] not in SAFE_METHODS and path not in READING
        is_asked_from_afar = not self.options.is_local and _is_api(scope)
        if not is_writing and not is_asked_from_afar:
            return
        if self._token:
            kind, _, given = headers.get("authorization", "").partition(" ")
            is_right = compare_digest(given.strip().encode(), self._token)
            if kind.lower() != "bearer" or not is_right:
                raise Problem(
                    401,
                    "This needs the token of the service, sent as `Authorization: Bearer TOKEN`.",
                    headers={"WWW-Authenticate": 'Bearer realm="repcl"'},
                )
        if is_writing and self.options.why_not:
            raise Problem(403, self.options.why_not)


class _Answer:
    """Sends an answer with the headers that every answer has, and remembers its status.

    Args:
        send: takes the parts of the answer.
        headers: that every answer has.
        waiting: the answers that have not begun. An answer leaves them when it begins, so that listening to
            a job for hours keeps nobody else out.
    """

    def __init__(self, send: Send, headers: Mapping[str, str], waiting: set["_Answer"]) -> None:
        self.send = send
        self.headers = headers
        self.waiting = waiting
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.waiting.discard(self)
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in self.headers.items():
                headers.setdefault(name, value)
        if message.get("more_body", False) or len(message.get("body", b"")) > TAKEN_AT_ONCE:
            await self._send_in_time(message)
        else:
            await self.send(message)

    async def _send_in_time(self, message: Message) -> None:
        try:
            await asyncio.wait_for(self.send(message), READING_SECONDS)
        except asyncio.TimeoutError:
            raise _Gone from None


def _check_length(headers: Headers) -> None:
    """Refuse a body with two lengths: a proxy in front may believe the other one."""
    if "content-length" in headers and "transfer-encoding" in headers:
        raise Problem(
            400,
            "Expected the header Content-Length or Transfer-Encoding, found both: send one of them.",
            headers={"Connection": "close"},
        )


async def _whole_body(headers: Headers, receive: Receive) -> bytes:
    """The body of a request, unless it is too large, too slow, or not JSON."""
    if headers.get("content-length", "0").isdigit() and int(headers.get("content-length", "0")) > BODY_BYTES:
        raise _too_large()
    try:
        body = await asyncio.wait_for(_read(receive), BODY_SECONDS)
    except asyncio.TimeoutError:
        raise Problem(408, f"The body did not arrive within {BODY_SECONDS:.0f} seconds.") from None
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    # a page elsewhere cannot send this type without asking first, and is never allowed to
    if body and media_type != "application/json":
        raise Problem(415, "Expected the header `Content-Type: application/json`, found another type.")
    return body


async def _read(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_BYTES:
            raise _too_large()
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large() -> Problem:
    return Problem(
        413, f"Expected a body of at most {BODY_BYTES} bytes, found a larger one: send it in parts."
    )


def _once(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read already, then whatever comes after it."""
    rest: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Message:
        return rest.pop() if rest else await receive()

    return give


def _without_port(host: str) -> str:
    """The name in a Host header: `localhost:8000` -> `localhost`, `[::1]:8000` -> `[::1]`."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _is_api(scope: Scope) -> bool:
    path: str = scope["path"]
    return path.startswith(API)


def _known_method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "other"


def _route(scope: Scope) -> str:
    """The route as it was declared; what a user typed into the address is not repeated."""
    route: Any = scope.get("route")
    return getattr(route, "path", None) or ("other" if _is_api(scope) else "page")
