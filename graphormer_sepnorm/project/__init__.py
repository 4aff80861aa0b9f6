"""A project over time: one file to share, a log of predictions, and new measurements."""
