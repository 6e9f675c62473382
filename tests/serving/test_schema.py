"""Requests made from the OpenAPI document: none breaks the service, and every answer is as documented."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress

import pytest
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from repcl.serving import jobs as jobs_module
from repcl.serving.app import create_app
from repcl.serving.options import Options
from repcl.serving.process import LearningProcess
from repcl.serving.worker import Failed
from tests.serving.conftest import TOKEN, WITH_TOKEN

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi import checks

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
FEW, MANY = 8, 420


class Idle(LearningProcess):
    """Learns nothing: what jobs do is tested elsewhere."""

    def messages(self, assignment):
        yield Failed("Idle", "Nothing was learned.")


@pytest.fixture
def address(model, monkeypatch) -> Iterator[str]:
    """A service that listens, with a collection and jobs that end at once."""
    monkeypatch.setattr(jobs_module, "LearningProcess", Idle)
    monkeypatch.setattr(jobs_module, "WAITING_JOBS", 10**6)
    app = create_app(Options(model, token=TOKEN, collects=True, device="cpu"))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        pass
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def try_all(address: str, cases: int) -> int:
    """So many cases of every operation and of both kinds, those that fit and those that do not; how many."""
    schema = schemathesis.openapi.from_url(f"{address}/v1/openapi.json")
    count = 0
    for found in schema.get_all_operations():
        for mode in GenerationMode:

            @settings(
                max_examples=cases,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=found.ok().as_strategy(mode))
            def answers_as_documented(case):
                nonlocal count
                count += 1
                case.validate_response(case.call(base_url=address, headers=WITH_TOKEN), CHECKS)

            with suppress(Unsatisfiable):  # nothing can be wrong about a request without any part
                answers_as_documented()
    return count


@pytest.mark.filterwarnings("ignore")
def test_requests_that_fit_and_that_do_not_are_answered_as_documented(address):
    assert try_all(address, FEW) >= 200


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ten_thousand_requests_are_answered_as_documented(address):
    assert try_all(address, MANY) >= 10_000
