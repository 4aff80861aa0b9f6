"""Layers: SepNorm and other norms, messages, GELU, readouts, and SepNorm for other transformers."""
