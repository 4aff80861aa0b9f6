"""Inference: forward passes, predictions, embeddings, explanations and analyses."""
