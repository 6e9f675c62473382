"""Errors as RFC 9457 describes them: every answer that is not a success has the same body."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from repcl.classifier.store.files import CannotWrite, ModelIsLocked
from repcl.classifier.store.records import DamagedModel
from repcl.errors import MissingData, RepclError, UnknownName
from repcl.serving.bodies import ALTERNATIVES, FieldProblem, ProblemBody

MEDIA_TYPE = "application/problem+json"
MOST_ERRORS = 50
RETRY_AFTER = {"Retry-After": "1"}
MESSAGES = {
    "string_pattern_mismatch": "Expected text that is not blank and has no null characters",
    "model_type": "Expected a JSON object",
    "model_attributes_type": "Expected a JSON object",
}
"""What to say about bodies instead of the words of the library that checks requests."""

_STATUS: tuple[tuple[type[RepclError], int], ...] = (
    (UnknownName, 404),
    (MissingData, 404),
    (ModelIsLocked, 409),
    (CannotWrite, 503),
    (DamagedModel, 503),
    (RepclError, 422),
)


class Problem(Exception):
    """A request cannot be answered; the sentence says what to do."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[FieldProblem] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self.errors = list(errors)

    @property
    def response(self) -> Response:
        """The answer to the request."""
        title = title_of(self.status)
        body = ProblemBody(
            type=f"urn:repcl:problem:{title.lower().replace(' ', '-')}",
            title=title,
            status=self.status,
            detail=self.detail,
            errors=self.errors or None,
        )
        data = json.dumps(body.model_dump(exclude_none=True), ensure_ascii=False)
        return Response(data, self.status, self.headers, MEDIA_TYPE)


def title_of(status: int) -> str:
    """What a status is called."""
    # the names of two have changed between versions of Python
    return {413: "Content Too Large", 422: "Unprocessable Content"}.get(status) or HTTPStatus(status).phrase


def problem_of(error: RepclError) -> Problem:
    """The problem that an error of the classifier is to whoever asked."""
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    detail = error.without_options if isinstance(error, ModelIsLocked) else str(error)
    return Problem(status, detail, headers=RETRY_AFTER if status == 503 else None)


def add_handlers(app: Starlette) -> None:
    """Let every error of an app have a problem body."""
    app.add_exception_handler(Problem, _answer_problem)
    app.add_exception_handler(RepclError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(Exception, _answer_unforeseen)


UNFORESEEN = Problem(500, "Something happened that repcl did not foresee: see the service's log.")


async def _answer_unforeseen(_: Request, __: Exception) -> Response:
    return UNFORESEEN.response


async def _answer_problem(_: Request, error: Exception) -> Response:
    return error.response if isinstance(error, Problem) else UNFORESEEN.response


async def _answer_error(_: Request, error: Exception) -> Response:
    return problem_of(error).response if isinstance(error, RepclError) else UNFORESEEN.response


async def _answer_invalid(_: Request, error: Exception) -> Response:
    """Say where a request is wrong and what was expected; what was found is not repeated."""
    found: Sequence[Any] = error.errors() if isinstance(error, RequestValidationError) else []
    fields = [
        FieldProblem(location=_location(one["loc"]), message=_message(one)) for one in found[:MOST_ERRORS]
    ]
    more = f" The first {MOST_ERRORS} are listed." if len(found) > MOST_ERRORS else ""
    first = f"{fields[0].location}: {fields[0].message}" if fields else "see the OpenAPI document"
    count = "one problem" if len(found) == 1 else f"{len(found)} problems"
    return Problem(422, f"The request has {count}, first {first}.{more}", errors=fields).response


def _location(parts: Sequence[Any]) -> str:
    """Where a request is wrong, without the names of the alternatives that a field has."""
    return ".".join(str(part) for part in parts if part not in ALTERNATIVES)


def _message(error: Mapping[str, Any]) -> str:
    """What is wrong, in words that need no library's manual."""
    if error["type"] in MESSAGES and error["loc"][0] == "body":
        return MESSAGES[error["type"]]
    return str(error["msg"]).removeprefix("Value error, ")


async def _answer_http(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return UNFORESEEN.response
    details = {
        404: "There is nothing at this address: /v1/openapi.json lists what there is.",
        405: "This address does not take that method: /v1/openapi.json lists what it takes.",
        400: "Expected JSON in the body, found something else.",
    }
    detail = details.get(error.status_code, title_of(error.status_code))
    return Problem(error.status_code, detail, headers=error.headers).response
