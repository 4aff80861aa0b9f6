"""Interfaces: the commands and the scikit-learn estimators."""
