"""Who may ask, how much a request may hold, and what a browser may do with the answer."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from closecall.web.limits import Limits

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 (compared with, not bound to)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class Guard:
    """Refuses what comes from other sites or is too large, before anything reads it."""

    def __init__(self, app: ASGIApp, *, host: str, names: Collection[str], limits: Limits) -> None:
        self.app, self.limits = app, limits
        self.names = LOOPBACK | {name.lower() for name in names} | ({host.lower()} - WILDCARDS)
        self.any_address = host in WILDCARDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS.items()]
            await send(message)

        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self.refusal(scope, headers)
        if refusal is not None:
            await refuse(send_guarded, *refusal)
            return
        await self.app(scope, self.counted(receive, self.most_bytes(scope["path"])), send_guarded)

    def refusal(self, scope: Scope, headers: dict[bytes, str]) -> tuple[int, str] | None:
        """Why a request is not heard, if it is not."""
        host = headers.get(b"host", "")
        if not self.is_ours(host):
            return 403, "This server answers to its own name only: open it by the address that it printed."
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return 403, "This request comes from another page: open the server's own."
        fetched = headers.get(b"sec-fetch-site", "same-origin")
        if scope["path"].startswith("/api") and fetched not in ("same-origin", "none"):
            return 403, "This request comes from another site: open the server's own page."
        length = headers.get(b"content-length", "0")
        most = self.most_bytes(scope["path"])
        if not length.isascii() or not length.isdigit() or int(length[:18]) > most:
            return 413, f"A request here has at most {most:,} bytes."
        return None

    def is_ours(self, host: str) -> bool:
        """Whether a Host header names this server; an address cannot be the name of another site."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self.names or (self.any_address and is_address(name))

    def most_bytes(self, path: str) -> int:
        by_path = {"/api/models": self.limits.model_bytes, "/api/pictures": self.limits.picture_bytes}
        return by_path.get(path, self.limits.body_bytes)

    def counted(self, receive: Receive, most: int) -> Receive:
        """Take no more bytes than allowed, also where their number was not announced."""
        taken = 0

        async def receive_counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most:
                raise HTTPException(413, f"A request here has at most {most:,} bytes.")
            return message

        return receive_counted


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def refuse(send: Send, code: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers: list[Any] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
