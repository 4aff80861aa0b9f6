"""Inference: from a trained model to predictions, embeddings, explanations and pictures, for SMILES and whole tables.

A new column of predictions is declared in ``columns``; a new explanation is a method in ``explain``.
"""
