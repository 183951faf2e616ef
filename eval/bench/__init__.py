"""Benchmarks of speed and memory: ``python -m eval.bench NAME``."""
