"""Chemistry: reading SMILES, properties of molecules, and the vocabularies of atoms and bonds."""
