"""Searches for a recipe that suits a table, by Optuna."""
