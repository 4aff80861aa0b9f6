"""Structures of the molecules of a table, which its rows are grouped by.

Axis letters: M rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from rdkit import Chem

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.chem.properties import molecule_key, murcko_scaffold, parent_key
from graphormer_sepnorm.chem.smiles import one_molecule
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.workers import Smiles


@dataclass(frozen=True)
class MoleculeStructure:
    """The properties by which a molecule is grouped with others.

    Attributes:
        smiles: as it is read.
        scaffold: its ``murcko_scaffold``.
        key: its ``molecule_key``.
        parent: its ``parent_key``.
        parts: number of its parts that are not bonded to each other.
    """

    smiles: str
    scaffold: str
    key: str
    parent: str
    parts: int = 1


@dataclass(frozen=True)
class Structures:
    """The properties by which molecules are grouped, as columns.

    Attributes:
        smiles: M SMILES.
        scaffolds: their ``murcko_scaffold``.
        keys: their ``molecule_key``.
        parents: their ``parent_key``, which a salt shares with its acid or base; none: the keys.
        parts: numbers of their parts that are not bonded to each other; none: one each.
    """

    smiles: list[str]
    scaffolds: list[str]
    keys: list[str]
    parents: list[str] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, found: Sequence[MoleculeStructure]) -> "Structures":
        columns = [[getattr(each, field.name) for each in found] for field in fields(MoleculeStructure)]
        return cls(*columns)

    @property
    def families(self) -> list[str]:
        """Equal for rows that stay together: those of one molecule, of its salts and of its protonated forms."""
        return self.parents or self.keys

    def take(self, places: Sequence[int]) -> "Structures":
        """The structures of the rows with these numbers."""
        columns = (getattr(self, each.name) for each in fields(self))
        return Structures(*([column[place] for place in places] if column else [] for column in columns))


def read_structures(featurizer: str, smiles: Smiles) -> list[MoleculeStructure | str]:
    """For each SMILES its structure, or the reason why it cannot be read."""
    answers: list[MoleculeStructure | str] = []
    for text in smiles:
        try:
            read, mol = FEATURIZERS[featurizer].read(text)
            key = molecule_key(mol)
            found = MoleculeStructure(read, murcko_scaffold(mol), key, parent_key(mol, key), len(Chem.GetMolFrags(mol)))
            with one_molecule(read):
                FEATURIZERS[featurizer].features(mol, read)
            answers.append(found)
        except InputError as error:
            answers.append(str(error))
    return answers
