"""`repcl serve`: a model behind HTTP, with a page to teach, try and trust it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcl.cli.console import sentence_console
from repcl.cli.options import Device, Model
from repcl.errors import MissingPackage, counted

if TYPE_CHECKING:
    from repcl.serving.service import Service


def serve_command(
    model: Model,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free one.")
    ] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token needed to change the model; or set REPCL_TOKEN."),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Only answer; pick up changes that others make to the model.")
    ] = False,
    collect: Annotated[
        bool,
        typer.Option("--collect", help="Keep unknown texts in the model folder, for review; needs a token."),
    ] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any other than loopback needs a token.")
    ] = "127.0.0.1",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Another host name that the service is reached by; * for any. Repeatable."
        ),
    ] = None,
    device: Device = None,
) -> None:
    """Let a model answer and learn over HTTP, with a web page at the same address."""
    from repcl.classifier.store.folder import ModelFolder
    from repcl.serving.options import Options, read_token

    options = Options(
        model=model,
        token=read_token(token_file),
        is_read_only=read_only,
        collects=collect,
        host=host,
        allowed_hosts=tuple(allowed_host or ()),
        device=device,
    )
    ModelFolder(model).in_use()
    try:
        from repcl.serving.run import serve  # takes seconds; a wrong option is said at once
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette"):
            raise
        raise MissingPackage(
            f"Serving a model needs the package {error.name}: install it with pip install 'repcl[serve]'."
        ) from error
    serve(options, port, tell=_tell, opens_page=open_)


def _tell(address: str, service: "Service") -> None:
    """Say where the service is and what it may do."""
    say = sentence_console().print
    served = service.current.served
    classes = counted(len(served.classes), "class")
    say(f"Serving {service.options.model} (revision {served.number}, {classes}) at {address}")
    say(service.options.why_not or "Teaching needs the token.")
    say("Ctrl-C ends it.")
