"""Chemistry: features of SMILES, and properties computed with RDKit. Nothing here depends on a model."""
