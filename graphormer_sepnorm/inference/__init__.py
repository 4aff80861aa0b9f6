"""Inference: from a trained model to predictions, embeddings, explanations and pictures, for SMILES and whole tables.

A new way to write a table's results is a ``Layout`` of ``resumable_writer``, beside those in ``predict_table`` and
``embed_table``; a new explanation is a method in ``explain``.
"""
