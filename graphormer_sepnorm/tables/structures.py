"""Structures of the molecules of a table, which its rows are grouped by."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import partial

from rdkit import Chem

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.chem.properties import family_of, molecule_key, murcko_scaffold, parent_key
from graphormer_sepnorm.chem.salts import is_doubtful, parent_part
from graphormer_sepnorm.chem.smiles import guess, one_molecule, read_smiles
from graphormer_sepnorm.chem.stereo import loses_stereo, num_stereo
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.workers import Smiles, in_chunks, map_chunks

SLIGHTLY = 0.1  # share of rows with training molecules that spoils a test score


@dataclass(frozen=True)
class MoleculeStructure:
    """The properties by which a molecule is grouped with others."""

    smiles: str  # as it is read
    scaffold: str
    key: str
    family: str
    parts: int = 1  # not bonded to each other
    is_doubtful: bool = False
    has_stereo: bool = False  # of its parent
    loses_stereo: bool = False  # by its preparation
    guessed: bool = False  # an InChI that leaves open where a hydrogen or charge is


@dataclass(frozen=True)
class Structures:
    """The properties by which molecules are grouped, as columns."""

    smiles: list[str]
    scaffolds: list[str]
    keys: list[str]
    family_keys: list[str] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    doubtful: list[bool] = field(default_factory=list)
    with_stereo: list[bool] = field(default_factory=list)
    flattened: list[bool] = field(default_factory=list)
    guessed: list[bool] = field(default_factory=list)

    @classmethod
    def of(cls, found: Sequence[MoleculeStructure]) -> "Structures":
        return cls(*([getattr(each, field.name) for each in found] for field in fields(MoleculeStructure)))

    @property
    def families(self) -> list[str]:
        """Equal for rows that stay together: of one molecule, its stereoisomers, salts and protonated forms."""
        return self.family_keys or self.keys

    def __add__(self, others: "Structures") -> "Structures":
        return Structures(*(getattr(self, each.name) + getattr(others, each.name) for each in fields(self)))

    def take(self, places: Sequence[int]) -> "Structures":
        columns = (getattr(self, each.name) for each in fields(self))
        return Structures(*([column[place] for place in places] if column else [] for column in columns))


def known_molecules(asked: Structures, learnt: Structures) -> dict[str, int]:
    """The numbers of asked rows whose molecule was learnt, and of others of whose family a molecule was learnt."""
    keys, families = set(learnt.keys), set(learnt.families)
    same = sum(key in keys for key in asked.keys)
    alike = sum(family in families for family in asked.families)
    return {"training_molecules": same, "training_families": alike - same}


def known_words(result: dict) -> str:
    """How far the ``known_molecules`` of a result on ``n`` rows spoil its score; "" if there are none."""
    same, alike, rows = (result.get(name, 0) for name in ("training_molecules", "training_families", "n"))
    if not same + alike:
        return ""
    what = "a training molecule" if not alike else "a training molecule, or a salt, stereoisomer or charged form of one"
    verdict = "the score is slightly too good" if same + alike < SLIGHTLY * rows else "this is no test score"
    return f"{same + alike:,} of {rows:,} rows {'has' if same + alike == 1 else 'have'} {what}: {verdict}"


def structures_of(featurizer: str, smiles: Sequence[str]) -> Structures:
    chunks = map_chunks(partial(read_structures, featurizer), in_chunks(smiles), list)
    return Structures.of([each for _, chunk in chunks for each in chunk if isinstance(each, MoleculeStructure)])


def read_structures(featurizer: str, smiles: Smiles) -> list[MoleculeStructure | str]:
    """For each SMILES its structure, or the reason why it cannot be read."""
    answers: list[MoleculeStructure | str] = []
    for text in smiles:
        try:
            read, mol = FEATURIZERS[featurizer].read(text)
            key, parts = molecule_key(mol), len(Chem.GetMolFrags(mol))
            given = mol if read == text else read_smiles(text)
            marked, flattened = num_stereo(parent_part(mol)) > 0, loses_stereo(given, mol)
            scaffold, family = murcko_scaffold(mol), family_of(parent_key(mol, key))
            said = (is_doubtful(given), marked, flattened, bool(guess(text)))
            found = MoleculeStructure(read, scaffold, key, family, parts, *said)
            with one_molecule(read):
                FEATURIZERS[featurizer].features(mol, read)
            answers.append(found)
        except InputError as error:
            answers.append(str(error))
    return answers
