"""Benchmark datasets, and the store of prepared molecules."""
