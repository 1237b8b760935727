"""The page of a batch, made from the rows of its store alone."""
