"""The application: the page, the API behind it, and errors as sentences."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from closecall._version import __version__
from closecall.errors import ClosecallError, InputError
from closecall.report.style import STYLE
from closecall.web import asking, looking
from closecall.web.catalogue import Model, UnknownModelError
from closecall.web.desk import Desk
from closecall.web.guard import Guard
from closecall.web.limits import Limits
from closecall.web.questions import FullError

log = logging.getLogger(__name__)

KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
SAID = {
    400: "The body of this request is not JSON that can be read.",
    404: "There is nothing at this address.",
    405: "This address does not take such a request.",
}
CODES: dict[type[Exception], int] = {
    UnknownModelError: 404,
    asking.UnknownError: 404,
    FullError: 429,
    InputError: 400,
    ClosecallError: 503,
}


def create_app(
    own: list[Model], limits: Limits, *, host: str = "127.0.0.1", names: Collection[str] = ()
) -> FastAPI:
    """The application for some models of the user's own, behind its guard."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        desk = app.state.desk = Desk(own, limits)
        await desk.open()
        yield
        desk.close()

    app = FastAPI(
        title="closecall serve",
        summary="The nearest image that changes a classifier's mind, with proofs, as JSON.",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
    )
    app.include_router(looking.router)
    app.include_router(asking.router)
    app.add_exception_handler(RequestValidationError, explain_validation)
    app.add_exception_handler(HTTPException, explain_http)
    app.add_exception_handler(ClosecallError, explain_error)
    app.add_exception_handler(Exception, explain_surprise)
    add_page(app)
    app.add_middleware(Guard, host=host, names=names, limits=limits)
    return app


def add_page(app: FastAPI) -> None:
    """The files of the page, all of them read now: no request names one on the disk."""
    folder = files("closecall.web") / "page"
    contents = {f"/{entry.name}": entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}
    contents["/report.css"] = STYLE.encode()
    contents["/"] = contents.pop("/index.html")

    for path, content in contents.items():
        kind = KINDS[path.rpartition(".")[2]] if path != "/" else KINDS["html"]
        app.add_api_route(path, giver(content, kind), include_in_schema=False)


def giver(content: bytes, kind: str) -> Any:
    async def give() -> Response:
        return Response(content, media_type=kind)

    return give


def said(code: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status_code=code)


async def explain_error(_request: Request, error: Exception) -> JSONResponse:
    """What closecall refuses on purpose says itself why."""
    code = next(code for kind, code in CODES.items() if isinstance(error, kind))
    return said(code, str(error))


async def explain_validation(_request: Request, error: Exception) -> JSONResponse:
    """The first thing that is not as it must be."""
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {"loc": (), "msg": str(error)}
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    reason = str(first["msg"])
    return said(422, f"{place or 'The request'}: {reason[0].lower()}{reason[1:]}.")


async def explain_http(_request: Request, error: Exception) -> JSONResponse:
    code = error.status_code if isinstance(error, HTTPException) else 500
    return said(code, SAID.get(code, str(getattr(error, "detail", error))))


async def explain_surprise(request: Request, error: Exception) -> JSONResponse:
    log.exception("%s failed", request.url.path, exc_info=error)
    return said(500, "Something went wrong that should not have: the server's terminal says more.")
