"""Benchmark datasets: which there are, how their downloads are read, and the store of prepared molecules.

A new dataset is a function and a line in ``benchmarks.DATASETS``.
"""
