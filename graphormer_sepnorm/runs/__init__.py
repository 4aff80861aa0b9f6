"""Runs: the files of a run folder, checkpoints, shipped weights, plots and reports.

The name of a new file is defined in ``folder``. Shipped weights are in ``resources``, where ``zoo`` finds them.
"""
