"""Chemistry: features of SMILES, and properties computed with RDKit. Nothing here depends on a model.

To add a featurizer, create a ``Featurizer`` and add a line to ``features.FEATURIZERS``. To add a property, write a
function in ``properties``.
"""
