"""Inference: predictions, embeddings, explanations and pictures from a trained model, for SMILES and whole tables.

A new column of predictions is declared in ``columns``; a new explanation is a method in ``explain``.
"""
