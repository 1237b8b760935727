"""The verbs that users call: nearest, certify, ideal, attack, predict, decide (VNN-LIB) and export."""
