"""The page that a comparison ends in, and its figures."""

from __future__ import annotations

from closecall.compare.page.report import write_report

__all__ = ["write_report"]
