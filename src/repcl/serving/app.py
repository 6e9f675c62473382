"""The web application: routes, problem bodies, the page, and the gate before all of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

import repcl
from repcl.serving.bodies import ProblemBody
from repcl.serving.gate import API, READING, Gate
from repcl.serving.options import Options
from repcl.serving.problems import add_handlers
from repcl.serving.routes import changing, reading
from repcl.serving.service import Service

REFERENCE = "#/components/schemas/{model}"
PAGE = Path(__file__).parent / "page"
DESCRIPTION = (
    "Ask and teach a text classifier that keeps learning. Changes are jobs: they are answered at once with "
    "202, run one at a time, and can be watched. Every error has a body as RFC 9457 describes it."
)


def create_app(options: Options) -> Gate:
    """An application that serves a model, which is loaded here: what is wrong is said before it starts."""
    service = Service.of(options)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    app = FastAPI(
        title="repcl",
        version=repcl.__version__,
        description=DESCRIPTION,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its page comes from another host
        redoc_url=None,
        lifespan=running,
    )
    app.state.service = service
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    add_handlers(app)
    app.include_router(reading)
    app.include_router(changing)
    return Gate(_beside_the_page(app), service)


def _beside_the_page(api: ASGIApp) -> ASGIApp:
    """The routes and, at every other address, the page."""
    page = Starlette(routes=[Mount("/", _Page(directory=PAGE, html=True))])
    add_handlers(page)

    async def site(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and not scope["path"].startswith(API)
        await (page if is_page else api)(scope, receive, send)

    return site


class _Page(StaticFiles):
    """The page's files, asked for again each time, so that a new version is seen at once."""

    async def get_response(self, path: str, scope: Scope) -> Any:
        """A file of the page."""
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the body that every error has and the token that changes need."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = found["components"]["schemas"]
        for name, schema in ProblemBody.model_json_schema(ref_template=REFERENCE).pop("$defs").items():
            schemas[name] = schema
        own = ProblemBody.model_json_schema(ref_template=REFERENCE)
        own.pop("$defs")
        schemas["ProblemBody"] = own
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in found["paths"].items():
            for method, operation in methods.items():
                if method != "get" and path not in READING:
                    operation["security"] = [{"token": []}]
        app.openapi_schema = found
    return app.openapi_schema
