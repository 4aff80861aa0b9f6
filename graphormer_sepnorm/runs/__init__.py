"""Runs: what a run folder holds, how a checkpoint is written and read, and what a run looks like."""
