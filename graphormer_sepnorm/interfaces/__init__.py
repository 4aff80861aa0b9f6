"""Interfaces: how the package is called from outside, the commands and the scikit-learn estimators.

A new command is a function here that parses, calls the package and prints; what it computes goes into another folder.
"""
