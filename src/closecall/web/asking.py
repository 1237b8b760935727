"""The part of the API that takes its time: questions, what becomes known of them, and their files."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from closecall.errors import InputError, QueryError
from closecall.web import schemas as s
from closecall.web.desk import AtDesk, Desk
from closecall.web.events import stream
from closecall.web.looking import PROBLEMS
from closecall.web.questions import Question

router = APIRouter(prefix="/api", tags=["asking"], responses=PROBLEMS)

ARCHIVE = "answer.zip"
KINDS = {"png": "image/png", "json": "application/json", "zip": "application/zip"}
Id = Annotated[str, Query(max_length=40)]
Ids = Annotated[list[Id], Query(min_length=1, max_length=12, alias="question")]


class UnknownError(InputError):
    """Something that is not there, or no longer."""


def find(desk: Desk, identity: str) -> Question:
    question = desk.questions.known.get(identity)
    if question is None:
        raise UnknownError(
            "This question is not known here, perhaps because the server was restarted: ask it again."
        )
    question.seen = time.monotonic()
    return question


def shown(desk: Desk, question: Question) -> s.QuestionOut:
    """Where a question stands."""
    best, answer = question.best, question.answer
    return s.QuestionOut(
        id=question.id,
        task=question.task,
        model=question.model,
        state=question.state,
        position=desk.questions.position(question),
        stage=question.stage,
        trail=question.trail,
        best=None if best is None else s.Best(**with_pictures(best, "picture")),
        answer=None
        if answer is None
        else s.Answer(**with_pictures(answer, "witness"), files=[*question.files, ARCHIVE]),
        sentence=question.sentence,
    )


def with_pictures(told: dict[str, Any], key: str) -> dict[str, Any]:
    pixels = told[key]
    return {**told, key: None if pixels is None else s.Picture.of(pixels)}


@router.post("/questions", status_code=202)
async def ask(desk: AtDesk, given: s.QuestionIn) -> s.QuestionOut:
    """Ask a question; it queues, runs, and is stopped when nobody listens to it or asks about it any more."""
    model, asked = desk.catalogue.find(given.model), given.asked()
    if given.time_limit > desk.limits.seconds:
        raise QueryError(f"The time limit here is at most {desk.limits.seconds:g} seconds.")
    image = None if given.picture is None or given.task == "ideal" else given.picture.array()
    if image is not None and image.shape != model.shape:
        raise QueryError(f"{model.name} takes images of shape {list(model.shape)}, not {list(image.shape)}.")
    arguments = {
        "source": model.source, "task": given.task, "image": image, "asked": asked, "limit": given.time_limit,
        "class_names": model.class_names, "origin": {"page": "closecall serve"},
    }  # fmt: skip
    return shown(desk, desk.questions.ask(Question(given.task, model.name, arguments, given.time_limit)))


@router.get("/questions/{identity}")
async def standing(desk: AtDesk, identity: str) -> s.QuestionOut:
    """Where a question stands; asking keeps it alive."""
    return shown(desk, find(desk, identity))


@router.post("/questions/{identity}/stop", status_code=202)
async def stop(desk: AtDesk, identity: str) -> s.QuestionOut:
    """End a question with the best that it has found and proven."""
    question = find(desk, identity)
    if not question.over:
        desk.questions.stop(question)
    return shown(desk, question)


@router.get("/questions/{identity}/files/{name}", response_class=Response)
async def file_of(desk: AtDesk, identity: str, name: str) -> Response:
    """A file of an answer, by one of the names that the answer lists; `answer.zip` has all of them."""
    question = find(desk, identity)
    if question.answer is None or name not in (*question.files, ARCHIVE):
        raise UnknownError("This answer has no such file: take one of those that it lists.")
    content = archive(question.files) if name == ARCHIVE else question.files[name]
    kind = KINDS.get(name.rpartition(".")[2], "application/octet-stream")
    return Response(
        content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def archive(files: dict[str, bytes]) -> bytes:
    """All files of an answer; unpacked, they are a folder that `closecall replay` checks."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return content.getvalue()


@router.get("/events", response_class=StreamingResponse)
async def events(desk: AtDesk, request: Request, identities: Ids) -> StreamingResponse:
    """Server-sent events about some questions until all are over: `question`, `progress`, `best`, `end`.

    A `question` event is where a question stands, as `/api/questions/ID` gives it; it comes first, and
    whenever its state or position changes.
    """
    asked = [find(desk, identity) for identity in dict.fromkeys(identities)]
    return StreamingResponse(lines(desk, request, asked), media_type="text/event-stream")


async def lines(desk: Desk, request: Request, asked: list[Question]) -> AsyncIterator[str]:
    async for line in stream(
        desk.questions,
        asked,
        lambda question: shown(desk, question).model_dump_json(),
        request.is_disconnected,
    ):
        yield line


@router.get("/status")
async def status(desk: AtDesk) -> s.Status:
    """How busy the server is."""
    questions = desk.questions
    over = sum(question.over for question in questions.known.values())
    return s.Status(running=len(questions.at_work), waiting=len(questions.queue), answered=over)
