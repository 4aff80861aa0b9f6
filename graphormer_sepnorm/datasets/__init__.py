"""Benchmark datasets: their definitions, how their downloads are read, and the store of prepared molecules.

To add a dataset, write a function and add a line to ``benchmarks.DATASETS``.
"""
