"""What the API takes and gives, as JSON."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from closecall.errors import DataError, QueryError
from closecall.web.limits import LARGEST_DRAWING, LARGEST_IMAGE

Side = Annotated[int, Field(ge=1, le=4096)]
Shape = tuple[Annotated[int, Field(ge=1, le=3)], Side, Side]
Name = Annotated[str, Field(min_length=1, max_length=120)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
ClassNumber = Annotated[int, Field(ge=0, le=100_000)]
Norm = Literal["l1", "l2", "linf", "l0"]


class Strict(BaseModel):
    """A body that has nothing but what is asked for."""

    model_config = ConfigDict(extra="forbid")


class Picture(Strict):
    """Pixels in base64, channel by channel and row by row: bytes (255 is 1), or float32 in little-endian."""

    shape: Shape = Field(description="channels, height, width", examples=[[1, 28, 28]])
    type: Literal["uint8", "float32"] = "uint8"
    pixels: Annotated[str, Field(max_length=1_100_000, description="base64")]

    def array(self, most: int = LARGEST_IMAGE) -> NDArray[np.float32]:
        """The pixels as numbers, if they are what the shape says."""
        count = math.prod(self.shape)
        if count > most:
            raise DataError(f"A picture here has at most {most:,} numbers, this one {count:,}.")
        try:
            content = base64.b64decode(self.pixels, validate=True)
        except (binascii.Error, ValueError) as error:
            raise DataError("The pixels of a picture are given in base64, and these are not.") from error
        kind = np.dtype("u1" if self.type == "uint8" else "<f4")
        if len(content) != count * kind.itemsize:
            raise DataError(
                f"A picture of shape {list(self.shape)} has {count * kind.itemsize:,} bytes, "
                f"not {len(content):,}."
            )
        values = np.frombuffer(content, dtype=kind).reshape(self.shape)
        pixels = values / np.float32(255) if self.type == "uint8" else values
        if not bool(((pixels >= 0) & (pixels <= 1)).all()):
            raise DataError("The pixels of a picture lie between 0 and 1, and some of these do not.")
        return pixels.astype(np.float32)

    @classmethod
    def of(cls, pixels: NDArray[Any]) -> Picture:
        """A picture of an array: bytes as they are, anything else as float32."""
        kind: Literal["uint8", "float32"] = "uint8" if pixels.dtype == np.uint8 else "float32"
        content = np.ascontiguousarray(pixels, dtype="u1" if kind == "uint8" else "<f4").tobytes()
        channels, height, width = pixels.shape
        return cls(shape=(channels, height, width), type=kind, pixels=base64.b64encode(content).decode())


class PredictIn(Strict):
    """An image for some models of one shape; with `centre`, a drawing, to be fitted as MNIST's digits are."""

    picture: Picture
    models: Annotated[list[Name], Field(min_length=1, max_length=6)]
    centre: bool = False

    def pixels(self) -> NDArray[np.float32]:
        if self.centre and self.picture.shape[0] != 1:
            raise DataError("A drawing has one channel.")
        return self.picture.array(LARGEST_DRAWING if self.centre else LARGEST_IMAGE)


class Prediction(BaseModel):
    """The class that is seen; `shares` are probabilities, or the lengths of capsules."""

    model: str
    label: int
    shares: list[float]


class PredictOut(BaseModel):
    """The image as the models take it, and what each of them sees in it."""

    picture: Picture
    predictions: list[Prediction]
    seconds: float


class ModelOut(BaseModel):
    """A model that can be asked about; nothing can be proven of one that is not `provable`."""

    name: str
    kind: str
    title: str
    shape: Shape
    classes: int
    class_names: list[str]
    dataset: str
    accuracy: float | None
    units: int | None
    provable: bool


class LimitsOut(BaseModel):
    """How much may be asked for."""

    running: int
    waiting: int
    seconds: float
    picture_bytes: int
    picture_side: int
    model_bytes: int


class Overview(BaseModel):
    """What a page needs first."""

    version: str
    models: list[ModelOut]
    defaults: list[str]
    galleries: list[str]
    limits: LimitsOut


class GalleryImage(BaseModel):
    """An image of a test set; `seen` are the classes that networks of the zoo give it."""

    label: int
    index: int
    odd: bool
    seen: list[int]
    picture: Picture


class QuestionIn(Strict):
    """`nearest` and `certify` are about a picture, `ideal` about a class; `certify` needs a radius."""

    task: Literal["nearest", "certify", "ideal"]
    model: Name
    picture: Picture | None = None
    target: ClassNumber | Literal["any", "paper"] = "any"
    norm: Norm = "l1"
    cap: Positive | None = None
    radius: Positive | None = None
    time_limit: Positive = 60.0

    def asked(self) -> dict[str, Any]:
        """What is asked, without what would have no meaning."""
        if self.task == "ideal":
            if not isinstance(self.target, int):
                raise QueryError("Which class? `ideal` needs the number of one as its target.")
            return {"target": self.target}
        if self.picture is None:
            raise QueryError(f"`{self.task}` is asked about a picture: give one.")
        if self.task == "certify" and self.radius is None:
            raise QueryError("`certify` needs a radius, such as 0.03.")
        return {"target": self.target, "norm": self.norm, "cap": self.cap, "radius": self.radius}


class Best(BaseModel):
    """The nearest image so far, not yet replayed in the original model."""

    distance: float
    picture: Picture
    label: int
    shares: list[float]


class Answer(BaseModel):
    """What was found and what is proven. Of `ideal`, `distance` is the lead and `lower` the proven most."""

    outcome: str
    sentence: str
    proven: bool
    distance: float | None
    lower: float | None
    label: int
    became: int | None
    witness: Picture | None
    shares_before: list[float] | None
    shares_after: list[float] | None
    seconds: float
    nodes: int
    engine: str
    notes: list[str]
    files: list[str] = Field(description="what can be fetched from /api/questions/ID/files/NAME")


class QuestionOut(BaseModel):
    """Where a question stands; `position` counts those before it, `trail` is (seconds, lower, upper)."""

    id: str
    task: str
    model: str
    state: Literal["waiting", "running", "answered", "failed", "cancelled"]
    position: int | None
    stage: str
    trail: list[tuple[float, float | None, float | None]]
    best: Best | None
    answer: Answer | None
    sentence: str = Field(description="why there is no answer, where there is none")


class Status(BaseModel):
    """How busy the server is."""

    running: int
    waiting: int
    answered: int


class LookIn(Strict):
    """An image for a capsule network."""

    model: Name
    picture: Picture


class Routing(BaseModel):
    """One iteration: couplings by class and place (`side` × `side`), and the class capsules' lengths."""

    side: int
    couplings: list[list[float]]
    lengths: list[float]


class LookOut(BaseModel):
    """The class capsules, what the longest is decoded to, and how the routing settles."""

    label: int
    lengths: list[float]
    capsules: list[list[float]]
    reconstruction: Picture
    routing: list[Routing]


class DecodeIn(Strict):
    """A capsule of a class, to be decoded."""

    model: Name
    label: ClassNumber
    capsule: Annotated[list[Annotated[float, Field(ge=-100, le=100)]], Field(min_length=1, max_length=64)]


class PullApartIn(Strict):
    """Two digits, laid over each other `apart` pixels (down, right)."""

    model: Name
    parts: tuple[Picture, Picture]
    apart: tuple[Annotated[int, Field(ge=-16, le=16)], Annotated[int, Field(ge=-16, le=16)]] = (0, 0)


class Part(BaseModel):
    """What one of the two longest capsules stands for."""

    label: int
    length: float
    picture: Picture


class PullApartOut(BaseModel):
    """The two on one image, and each of them as it was seen."""

    picture: Picture
    seen: list[Part]
    lengths: list[float]


class Problem(BaseModel):
    """Why nothing came of a request, in one sentence."""

    error: str
