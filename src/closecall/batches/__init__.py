"""Thousands of questions: asked together, on one machine or many, answered into a store that survives."""
