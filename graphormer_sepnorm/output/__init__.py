"""Tables of predictions and embeddings: their columns, and a writer that resumes."""
