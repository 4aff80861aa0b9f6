"""Data: which datasets there are, how tables are read, labelled and split, and the store of prepared molecules.

A new dataset is a function and a line in ``benchmarks.DATASETS``, a new table format a reader in ``tables``.
"""
