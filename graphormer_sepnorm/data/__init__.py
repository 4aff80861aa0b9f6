"""Data: benchmarks, tables of one's own, their splits and labels, and the store of prepared molecules."""
