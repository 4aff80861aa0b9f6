"""Predictions for libraries of millions of molecules, in parts and by many processes."""
