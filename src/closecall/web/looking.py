"""The part of the API that answers at once: models, images, predictions and capsules."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request
from numpy.typing import NDArray

from closecall._version import __version__
from closecall.errors import QueryError
from closecall.verdict.eight_bit import to_steps
from closecall.web import schemas as s
from closecall.web.catalogue import DEFAULTS, Model
from closecall.web.desk import AtDesk, seconds_since, shape_in
from closecall.web.gallery import GALLERIES, gallery

Bytes: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
GalleryName = Literal["mnist", "cifar10"]
ShapeText = Annotated[
    str | None, Query(description="channels,height,width", examples=["1,28,28"], max_length=40)
]
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": s.Problem, "description": what}
    for code, what in {
        400: "the request cannot be used",
        403: "it came from another place than this page",
        404: "there is no such thing",
        413: "it is too large",
        422: "it is not what is asked for",
        429: "too much is going on",
        503: "the process that was asked has ended",
    }.items()
}
router = APIRouter(prefix="/api", tags=["looking"], responses=PROBLEMS)


def described(model: Model) -> s.ModelOut:
    return s.ModelOut(
        name=model.name,
        kind=model.source.kind,
        title=model.title,
        shape=model.shape,
        classes=model.classes,
        class_names=list(model.class_names),
        dataset=model.dataset,
        accuracy=model.accuracy,
        units=model.units,
        provable=model.provable,
    )


@router.get("/overview")
async def overview(desk: AtDesk) -> s.Overview:
    """The models, galleries and limits of this server."""
    limits = desk.limits
    return s.Overview(
        version=__version__,
        models=[described(model) for model in desk.catalogue.models.values()],
        defaults=list(DEFAULTS),
        galleries=list(GALLERIES),
        limits=s.LimitsOut(**{name: getattr(limits, name) for name in s.LimitsOut.model_fields}),
    )


@router.get("/galleries/{name}")
async def images(name: GalleryName) -> list[s.GalleryImage]:
    """Images to begin with: of each class some that are easy to read, and an odd one."""
    return [s.GalleryImage(**{**entry, "picture": s.Picture.of(entry["picture"])}) for entry in gallery(name)]


@router.post("/predict")
async def predict(desk: AtDesk, given: s.PredictIn) -> s.PredictOut:
    """What models see in an image."""
    began = time.perf_counter()
    models = [desk.catalogue.find(name) for name in given.models]
    shape = models[0].shape
    if any(model.shape != shape for model in models):
        raise QueryError("The models that are asked together must take images of one shape.")
    found = await desk.do(
        "predict",
        sources=[model.source for model in models],
        image=given.pixels(),
        shape=shape,
        centre=given.centre,
    )
    return s.PredictOut(
        picture=in_bytes(found["picture"]) if given.centre else given.picture,
        predictions=found["predictions"],
        seconds=seconds_since(began),
    )


@router.post("/pictures", openapi_extra=Bytes)
async def read_picture(desk: AtDesk, request: Request, shape: ShapeText = "1,28,28") -> s.Picture:
    """A PNG or JPEG file, given as the body, as an image of a shape."""
    wanted = shape_in(shape) or (1, 28, 28)
    if wanted[0] not in (1, 3):
        raise QueryError("A picture has one or three channels.")
    content = await request.body()
    pixels = await desk.do("read_picture", content=content, shape=wanted, side=desk.limits.picture_side)
    return in_bytes(pixels)


def in_bytes(pixels: NDArray[np.float32]) -> s.Picture:
    """An image whose pixels are those of a picture file, as such."""
    return s.Picture.of(to_steps(pixels, (0.0, 1.0)))


@router.post("/models", status_code=201, openapi_extra=Bytes)
async def add_model(
    desk: AtDesk,
    request: Request,
    name: Annotated[str, Query(min_length=1, max_length=120, examples=["mine.onnx"])],
    input_shape: ShapeText = None,
) -> s.ModelOut:
    """Add a model by its .onnx file, given as the body; `input_shape` for one that leaves its sizes open."""
    return described(await desk.take_model(name, await request.body(), shape_in(input_shape)))


@router.post("/capsules")
async def look(desk: AtDesk, given: s.LookIn) -> s.LookOut:
    """What the capsules of an image know."""
    source = desk.catalogue.find(given.model).source
    found = await desk.do("look", source=source, image=given.picture.array())
    return s.LookOut(**{**found, "reconstruction": s.Picture.of(found["reconstruction"])})


@router.post("/capsules/decode")
async def decode(desk: AtDesk, given: s.DecodeIn) -> s.Picture:
    """The image that a capsule stands for."""
    source = desk.catalogue.find(given.model).source
    return s.Picture.of(await desk.do("decode", source=source, label=given.label, capsule=given.capsule))


@router.post("/capsules/overlapping")
async def pull_apart(desk: AtDesk, given: s.PullApartIn) -> s.PullApartOut:
    """Two digits laid over each other, and each of them as the two longest capsules show it."""
    source = desk.catalogue.find(given.model).source
    parts = tuple(part.array() for part in given.parts)
    found = await desk.do("pull_apart", source=source, parts=parts, apart=given.apart)
    seen = [s.Part(**{**part, "picture": s.Picture.of(part["picture"])}) for part in found["seen"]]
    return s.PullApartOut(picture=s.Picture.of(found["picture"]), seen=seen, lengths=found["lengths"])
