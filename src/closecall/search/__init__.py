"""How a question is answered: README.md shows the whole search on one page."""
