"""Layers: norms, readouts, and separate norms for other transformers."""
