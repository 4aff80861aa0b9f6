"""Layers: what SepNorm does to the CLS, the other norms, GELU and the readouts, and SepNorm in other
transformers.

A new norm is a class and a line in ``norms.NORMS``, a new readout a function and a line in ``readouts.READOUTS``.
"""
