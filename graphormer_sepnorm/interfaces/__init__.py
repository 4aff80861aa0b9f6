"""Interfaces of the package: commands, page and scikit-learn estimators; computations belong in another folder."""
