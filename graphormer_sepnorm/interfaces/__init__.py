"""Interfaces of the package: the commands and the scikit-learn estimators.

A command is a function here that parses, calls the package and prints; computations belong in another folder.
"""
