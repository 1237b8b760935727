"""What the server has at hand for every request: models, questions, and a worker for what takes a moment."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request

from closecall.errors import InputError, ModelError
from closecall.web.catalogue import Catalogue, Model, onnx_model
from closecall.web.limits import Limits
from closecall.web.process import Process
from closecall.web.questions import FullError, Questions

ONNX_BEGINS = b"\x08"  # an ONNX file is a protobuf whose first field is the number of its format
MOST_READERS = 4  # uploads that wait to be read, one at a time


class Desk:
    """One for each server."""

    def __init__(self, own: list[Model], limits: Limits) -> None:
        self.limits = limits
        self.catalogue = Catalogue(own, limits.models)
        self.questions = Questions(limits)
        self.quick = Process("closecall-quick", limits.worker_memory)
        self.folder: Path | None = None  # of uploaded models, once there is one
        self.reading = asyncio.Lock()
        self.readers = 0
        self.uploads = 0

    async def open(self) -> None:
        """Start the workers with the usual models read."""
        warm = self.catalogue.warm()
        self.questions.open(warm)
        self.questions.keep(self.questions.warm_up(self.quick, warm))

    async def do(self, task: str, **arguments: Any) -> Any:
        """What takes a moment: a prediction, a picture, a capsule."""
        return await self.quick.call(task, arguments, seconds=self.limits.quick_seconds)

    async def take_model(self, name: str, content: bytes, input_shape: tuple[int, ...] | None) -> Model:
        """Read an uploaded model in a process of its own, and keep it under a name of ours on the disk."""
        if not name.lower().endswith(".onnx"):
            raise ModelError("A model is uploaded as an .onnx file: export it to ONNX first.")
        if not content.startswith(ONNX_BEGINS):
            raise ModelError("This is not an ONNX file: export the model again.")
        if self.readers >= MOST_READERS:
            raise FullError("Several models are being read already: try again in a moment.")
        shown = self.catalogue.free_name(name)
        self.uploads += 1
        self.folder = self.folder or Path(tempfile.mkdtemp(prefix="closecall-serve-"))
        place = self.folder / str(self.uploads) / "model.onnx"
        self.readers += 1
        try:
            async with self.reading:
                place.parent.mkdir()
                place.write_bytes(content)
                facts = await read_apart(shown, str(place), input_shape, self.limits)
        except BaseException:
            shutil.rmtree(place.parent, ignore_errors=True)
            raise
        finally:
            self.readers -= 1
        model = onnx_model(self.catalogue.free_name(name), str(place), facts)
        gone = self.catalogue.add(model)
        if gone is not None:
            shutil.rmtree(Path(gone.source.place).parent, ignore_errors=True)
        return model

    def close(self) -> None:
        """End all workers and forget what was uploaded."""
        self.questions.end()
        self.quick.end()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


async def read_apart(
    name: str, place: str, input_shape: tuple[int, ...] | None, limits: Limits
) -> dict[str, Any]:
    """What a worker that is ended afterwards reads of a model, within its memory and time."""
    reader = Process("closecall-reader", limits.reader_memory)
    try:
        facts: dict[str, Any] = await reader.call(
            "read_model",
            {"place": place, "input_shape": input_shape, "name": name},
            seconds=limits.reader_seconds,
        )
        return facts
    finally:
        reader.end()


def desk_of(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


AtDesk = Annotated[Desk, Depends(desk_of)]


def shape_in(text: str | None) -> tuple[int, int, int] | None:
    """Three whole numbers such as 1,28,28."""
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 3 or not all(
        part.isascii() and part.isdigit() and 1 <= int(part[:9]) <= 4096 for part in parts
    ):
        raise InputError("The shape of an image is three whole numbers from 1 to 4096 such as 1,28,28.")
    channels, height, width = map(int, parts)
    return channels, height, width


def seconds_since(began: float) -> float:
    return round(time.perf_counter() - began, 4)
