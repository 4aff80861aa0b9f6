"""Layers: SepNorm and other norms, messages, GELU, readouts, and SepNorm for other transformers.

To add a norm, write a class and add a line to ``norms.NORMS``. To add a readout, write a function and add a line to
``readouts.READOUTS``.
"""
