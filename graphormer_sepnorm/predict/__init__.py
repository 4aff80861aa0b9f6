"""Predictions of networks, and how far to trust them: intervals, calibration and the training molecules' domain."""
