"""An answer and the evidence for it: replayed, saved, checked, drawn."""
