"""From a network and a question to the arrays of a MILP."""
