"""What all tests share: hypothesis draws the same examples every time, so that no failure is a coin toss."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, print_blob=True)
settings.load_profile("repeatable")
