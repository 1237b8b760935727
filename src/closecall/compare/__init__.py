"""DNN, CNN, the paper's baseline and CapsNet on the same images: measured, kept, written down."""

from __future__ import annotations

from closecall.compare.results import Results

__all__ = ["Results"]
