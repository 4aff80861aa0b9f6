"""Inference: predictions, embeddings, explanations and pictures from a trained model, for SMILES and whole tables.

To add an output format for tables, write a ``Layout`` of ``resumable_writer`` as in ``predict_table`` and
``embed_table``. To add an explanation, write a function in ``explain``.
"""
