"""What models see in an image, at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from closecall.web.centring import centred
from closecall.web.messages import Source, Tell
from closecall.web.worker.opened import Pixels, opened, scores_of


def warm(_tell: Tell, *, sources: Sequence[Source]) -> None:
    """Open models before anybody asks about them."""
    for source in sources:
        opened(source)


def predict(
    _tell: Tell, *, sources: Sequence[Source], image: Pixels, shape: tuple[int, int, int], centre: bool
) -> dict[str, Any]:
    """The image as the models take it, and what each of them sees in it."""
    taken = centred(image, shape) if centre else image
    predictions = []
    for source in sources:
        label, scores = scores_of(source, taken)
        predictions.append({"model": source.name, "label": label, "shares": shares(source, scores)})
    return {"picture": taken, "predictions": predictions}


def shares(source: Source, scores: Any) -> list[float]:
    """Scores between 0 and 1 to be drawn as bars: probabilities, or the lengths of capsules as they are."""
    if source.kind == "capsnet":
        return [float(length) for length in scores]
    exponentials = np.exp(scores - scores.max())
    return [float(share) for share in exponentials / exponentials.sum()]
