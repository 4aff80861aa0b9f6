"""Chemistry: where a SMILES becomes integers, and what RDKit computes of a molecule; nothing here knows a model.

A new featurizer is a ``Featurizer`` and a line in ``features.FEATURIZERS``, a new property a function in
``properties``.
"""
