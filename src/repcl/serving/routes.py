"""The routes: what can be asked of a model, and what can be done to it."""

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import PlainTextResponse, StreamingResponse

import repcl
from repcl.classifier.inputs import common_kind
from repcl.errors import UnknownName
from repcl.serving.bodies import (
    ClassBody,
    ClassesBody,
    ClassTextsBody,
    Confused,
    ErasedBody,
    EraseRequest,
    EvaluateBody,
    EvaluateRequest,
    Health,
    HistoryBody,
    JobBody,
    JobsBody,
    Label,
    LearnRequest,
    LimitsBody,
    MergeRequest,
    ModelBody,
    PredictBody,
    PredictRequest,
    Ready,
    RemoveRequest,
    RenameRequest,
    RollbackRequest,
    UnknownBody,
)
from repcl.serving.evaluating import evaluated
from repcl.serving.metrics import MEDIA_TYPE as METRICS_TYPE
from repcl.serving.model import Question
from repcl.serving.options import (
    BODY_BYTES,
    EXAMPLES_PER_REQUEST,
    LABEL_LENGTH,
    TEXT_LENGTH,
    TEXTS_PER_REQUEST,
)
from repcl.serving.orders import Learn, Merge, Order, Remove, Rename, Rollback
from repcl.serving.problems import MEDIA_TYPE, Problem
from repcl.serving.service import Service

EVENTS_TYPE = "text/event-stream"

JobId = Annotated[str, InPath(pattern="^[0-9a-f]{12}$", examples=["0123456789ab"])]


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What can go wrong, for the OpenAPI document."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
    return {status: {"description": "Problem", "content": content} for status in statuses}


ALWAYS = _problems(400, 401, 408, 413, 415, 421, 422, 500, 503)

reading = APIRouter(prefix="/v1", responses=ALWAYS, tags=["reading"])
changing = APIRouter(prefix="/v1", responses=ALWAYS | _problems(403, 409), tags=["changing"])


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(_service)]


# ---- how it is ----------------------------------------------------------------------------------


@reading.get("/health")
async def health() -> Health:
    """Whether the process answers."""
    return Health(status="ok")


@reading.get("/ready")
async def ready(service: Served) -> Ready:
    """Whether a revision is loaded, and which."""
    return Ready(status="ready", revision=service.current.served.number)


@reading.get("/metrics", response_class=PlainTextResponse)
async def metrics(service: Served) -> Response:
    """Counts for Prometheus."""
    return Response(service.metrics_page(), media_type=METRICS_TYPE)


@reading.get("/model")
async def model(service: Served) -> ModelBody:
    """The model, and what may be done with it."""
    served, options = service.current.served, service.options
    learned = [one.learned for one in served.classes]
    return ModelBody(
        name=options.model.resolve().name,
        method=served.state.name,
        kind=served.state.kind,
        multilabel=served.state.is_multilabel,
        revision=served.number,
        classes=len(learned),
        texts=None if None in learned else sum(one or 0 for one in learned),
        can_write=options.can_write,
        why_not=options.why_not,
        needs_token=not options.is_local,
        collects=options.collects,
        version=repcl.__version__,
        limits=LimitsBody(
            texts_per_request=TEXTS_PER_REQUEST,
            examples_per_request=EXAMPLES_PER_REQUEST,
            text_length=TEXT_LENGTH,
            label_length=LABEL_LENGTH,
            body_bytes=BODY_BYTES,
        ),
    )


# ---- asking -------------------------------------------------------------------------------------


@reading.post("/predict", response_model=PredictBody)
async def predict(asked: PredictRequest, service: Served) -> Response:
    """The most likely classes of texts; all answers come from one revision."""
    examples = asked.examples()
    common_kind([one for one in examples if one.text.strip()], service.current.served.state.kind)
    model, answers = await service.answerer.ask(Question(examples, asked.top, asked.nearest))
    if asked.collect and service.options.collects and service.collector is not None:
        unsure = [one for one, answer in zip(examples, answers, strict=True) if answer["unknown"]]
        service.collector.add(one for one in unsure if one.text.strip())
    body = json.dumps({"revision": model.number, "predictions": answers}, ensure_ascii=False)
    return Response(body, media_type="application/json")


@reading.get("/classes")
async def classes(service: Served) -> ClassesBody:
    """All classes: texts learned, checked and kept, and what they are taken for."""
    served = service.current.served
    return ClassesBody(
        revision=served.number,
        classes=[
            ClassBody(
                label=one.name,
                texts=one.learned,
                checked=one.checked,
                recall=one.recall,
                confused_with=Confused(label=one.confused_with, count=one.confusions)
                if one.confused_with is not None
                else None,
                kept=one.kept,
            )
            for one in served.classes
        ],
    )


@reading.get("/classes/texts", responses=_problems(404))
async def class_texts(label: Annotated[Label, Query()], service: Served) -> ClassTextsBody:
    """The texts of a class that are kept word for word."""
    served = service.current.served
    if label not in served.state.names:
        raise UnknownName("class", label, sorted(served.state.names))
    return ClassTextsBody(label=label, texts=[one.text for one in served.kept if one.label == label])


@reading.get("/history")
async def history(service: Served) -> HistoryBody:
    """All revisions, oldest first."""
    return await asyncio.to_thread(service.history.page)


@reading.get("/unknown")
async def unknown(service: Served) -> UnknownBody:
    """Texts that the model was not sure of, in groups of alike ones."""
    groups = await service.review.groups() if service.review is not None else []
    total = sum(len(group.texts) for group in groups)
    return UnknownBody(collects=service.options.collects, total=total, groups=groups)


@reading.post("/evaluate")
async def evaluate(asked: EvaluateRequest, service: Served) -> EvaluateBody:
    """Compare the model's answers with the right labels."""
    examples = [one.labeled() for one in asked.examples]
    common_kind(examples, service.current.served.state.kind)
    return await evaluated(examples, service.answerer)


# ---- changing -----------------------------------------------------------------------------------


@changing.post("/learn", status_code=202)
async def learn(asked: LearnRequest, service: Served, response: Response) -> JobBody:
    """Teach texts; labels that the model does not know are new classes."""
    examples = tuple(one.labeled() for one in asked.examples)
    common_kind(examples, service.current.served.state.kind)
    return await _submitted(Learn(examples, tuple(asked.collected)), service, response)


@changing.post("/classes/rename", status_code=202)
async def rename(asked: RenameRequest, service: Served, response: Response) -> JobBody:
    """Give a class another name."""
    return await _submitted(Rename(asked.old, asked.new), service, response)


@changing.post("/classes/merge", status_code=202)
async def merge(asked: MergeRequest, service: Served, response: Response) -> JobBody:
    """Make one class of several."""
    return await _submitted(Merge(tuple(asked.labels), asked.into), service, response)


@changing.post("/classes/remove", status_code=202)
async def remove(asked: RemoveRequest, service: Served, response: Response) -> JobBody:
    """Forget a class; with `purge` every revision that holds it is deleted, too."""
    return await _submitted(Remove(asked.label, asked.purge), service, response)


@changing.post("/rollback", status_code=202)
async def rollback(asked: RollbackRequest, service: Served, response: Response) -> JobBody:
    """Use another revision."""
    return await _submitted(Rollback(asked.revision), service, response)


@changing.post("/unknown/erase")
async def erase(asked: EraseRequest, service: Served) -> ErasedBody:
    """Erase collected texts for good: those that are named, or all of them."""
    if service.collector is None:
        raise Problem(403, service.options.why_not or "")
    erased = await asyncio.to_thread(service.collector.erase, None if asked.all else asked.ids)
    return ErasedBody(erased=erased, total=len(service.collector.texts()))


async def _submitted(order: Order, service: Service, response: Response) -> JobBody:
    job = await asyncio.to_thread(service.jobs.submit, order)
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return job


# ---- jobs ---------------------------------------------------------------------------------------


@reading.get("/jobs")
async def jobs(service: Served) -> JobsBody:
    """All jobs, the newest first."""
    return JobsBody(jobs=service.jobs.all())


@reading.get("/jobs/{job}", responses=_problems(404))
async def job(job: JobId, service: Served) -> JobBody:
    """One job."""
    return service.jobs.get(job)


@reading.get(
    "/jobs/{job}/events",
    response_class=StreamingResponse,
    responses=_problems(404) | {200: {"content": {EVENTS_TYPE: {"schema": {"type": "string"}}}}},
)
async def events(job: JobId, service: Served) -> Response:
    """A job as server-sent events, until it is over."""
    return StreamingResponse(service.jobs.events(job), media_type=EVENTS_TYPE)


@changing.post("/jobs/{job}/cancel", responses=_problems(404))
async def cancel(job: JobId, service: Served) -> JobBody:
    """End a job that waits or runs."""
    return await asyncio.to_thread(service.jobs.cancel, job)


@changing.post("/jobs/{job}/accept", responses=_problems(404))
async def accept(job: JobId, service: Served) -> JobBody:
    """Use an update although the guard refused it."""
    return await asyncio.to_thread(service.jobs.decide, job, accept=True)


@changing.post("/jobs/{job}/discard", responses=_problems(404))
async def discard(job: JobId, service: Served) -> JobBody:
    """Delete an update that the guard refused."""
    return await asyncio.to_thread(service.jobs.decide, job, accept=False)
