"""Proof files: written beside an answer, and checked by whoever does not trust us."""
