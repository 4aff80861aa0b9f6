"""Explanations of predictions, their pictures, and the geometry of CLS embeddings."""
