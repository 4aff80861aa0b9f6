"""Runs: the files of a run folder, checkpoints, shipped weights, plots and reports."""
