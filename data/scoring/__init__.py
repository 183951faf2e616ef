"""Scoring rules: pure functions from an answer and what is accepted to numbers in [0, 1]."""
