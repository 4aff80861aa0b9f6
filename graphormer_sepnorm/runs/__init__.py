"""Runs: what files a run folder holds, how a checkpoint is written and read safely, and what a run looks like.

A new file of a run gets its name in ``folder``, new shipped weights go into ``resources``, where ``zoo`` finds them.
"""
