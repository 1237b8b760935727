"""Server-sent events: what becomes known of some questions, for as long as somebody listens."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from closecall.web.questions import Question, Questions
from closecall.web.schemas import Picture

SECONDS_BETWEEN_LOOKS = 1.0  # at whether the listener is still there
SECONDS_BETWEEN_SIGNS = 10.0  # of life, where there is nothing to tell
RETRY = "retry: 1000\n\n"


async def stream(
    questions: Questions,
    asked: Sequence[Question],
    shown: Callable[[Question], str],
    gone: Callable[[], Awaitable[bool]],
) -> AsyncIterator[str]:
    """Lines for one listener, until all questions are over, the listener is gone or the server ends."""
    followers = [Follower(question) for question in asked]
    for question in asked:
        question.listeners += 1
        question.followed = True
    try:
        yield RETRY
        last_sign = time.monotonic()
        while True:
            version = questions.version
            for follower in followers:
                for line in follower.news(questions, shown):
                    last_sign = time.monotonic()
                    yield line
            if all(question.over for question in asked):
                yield event("end", "{}")
                return
            if questions.closing or await gone():
                return
            if not await changed(questions, version) and time.monotonic() - last_sign > SECONDS_BETWEEN_SIGNS:
                last_sign = time.monotonic()
                yield ": still at it\n\n"
    finally:
        for question in asked:
            question.listeners -= 1
            question.seen = time.monotonic()


async def changed(questions: Questions, version: int) -> bool:
    """Wait a moment for something new."""
    try:
        async with asyncio.timeout(SECONDS_BETWEEN_LOOKS), questions.changed:
            await questions.changed.wait_for(lambda: questions.version != version or questions.closing)
    except TimeoutError:
        return False
    return True


class Follower:
    """What one listener has been told of one question."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.standing: tuple[str, int | None] | None = None
        self.events = 0

    def news(self, questions: Questions, shown: Callable[[Question], str]) -> list[str]:
        """All of it when its state or its place in the queue has changed, else what was told since."""
        question = self.question
        standing = (question.state, questions.position(question))
        if standing != self.standing:
            self.standing, self.events = standing, len(question.events)
            return [event("question", shown(question))]
        fresh, self.events = question.events[self.events :], len(question.events)
        return [event(what["kind"], json.dumps({"id": question.id, **as_json(what)})) for what in fresh]


def as_json(what: dict[str, Any]) -> dict[str, Any]:
    picture = {"picture": Picture.of(what["picture"]).model_dump()} if "picture" in what else {}
    return {**{key: value for key, value in what.items() if key != "kind"}, **picture}


def event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"
