"""Hyperparameter search for a user's table, with Optuna."""
