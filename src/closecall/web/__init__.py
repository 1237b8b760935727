"""`closecall serve`: a page to look with, over a small JSON API; searches run in processes of their own."""
