"""Predictions for libraries of millions of molecules, in partitions and with many processes."""
