"""Reading SMILES, and the two molecular properties computed here: penalized logP and the Murcko scaffold."""

import contextlib
from collections.abc import Iterator

from rdkit import Chem, rdBase
from rdkit.Chem import Crippen
from rdkit.Contrib.SA_Score import sascorer

from graphormer_sepnorm.errors import InputError

MAX_SMILES_LENGTH = 20_000
MAX_RINGS = 500
LONG_SMILES = 2_000  # what is shorter can hardly have so many rings

LOGP_MEAN, LOGP_STD = 2.4570953396190123, 1.434324401111988
NEGATIVE_SA_MEAN, NEGATIVE_SA_STD = -3.0525811293166134, 0.8335207024513095
NEGATIVE_CYCLE_MEAN, NEGATIVE_CYCLE_STD = -0.0485696876403053, 0.2860212110245455

_KEEPING_HYDROGENS = Chem.SmilesParserParams()
_KEEPING_HYDROGENS.removeHs = False
_FIXED_VALENCE = frozenset({"H", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Se", "Br", "I"})


@contextlib.contextmanager
def one_molecule(smiles: str = "") -> Iterator[None]:
    """What RDKit does with one molecule: in silence, and whatever it raises is an InputError of this molecule.

    RDKit raises many types: its own of sanitizing, RuntimeError of a violated condition inside, ArgumentError of its
    bindings, UnicodeEncodeError, MemoryError.  None of them may reach the other molecules of a table.

    Args:
        smiles: for the message.
    """
    try:
        with rdBase.BlockLogs():
            yield
    except InputError:
        raise
    except Exception as error:
        reason = ", ".join(line.strip() for line in str(error).strip().splitlines()[:2]) or type(error).__name__
        molecule = shortened(smiles) if smiles else "the molecule"
        raise InputError(f"RDKit fails on {molecule}: {ascii(reason[:100])[1:-1]}.") from error


def shortened(smiles: str) -> str:
    """A SMILES in quotes, the end of a long one left out."""
    return ascii(smiles if len(smiles) <= 60 else smiles[:57] + "...")


def read_smiles(smiles: str) -> Chem.Mol:
    """Returns the sanitized molecule that a SMILES describes.

    RDKit's strict parser is tried first.  Where its only objection is the valence of a metal or a metalloid, the
    molecule is read without that check, as older releases of RDKit read it: seven molecules of ogbg-molhiv, with
    aluminium, boron or germanium, need it.  A wrong valence of carbon, nitrogen and the like remains an error.

    Raises:
        InputError: not a string, empty, longer than ``MAX_SMILES_LENGTH``, with spaces or with characters that are
            not printable ASCII, not a SMILES, a SMILES of an impossible molecule, of one with more than ``MAX_RINGS``
            rings, in which RDKit would look for the smallest for minutes, or one that RDKit fails on; the message says
            which.
    """
    if not isinstance(smiles, str):
        raise InputError(f"A SMILES must be a string, not {type(smiles).__name__}.")
    if len(smiles) > MAX_SMILES_LENGTH:
        raise InputError(f"The SMILES has {len(smiles):,} characters; at most {MAX_SMILES_LENGTH:,} are read.")
    if not smiles.strip():
        raise InputError("The SMILES is empty: it has no atoms.")
    text = smiles.strip(" ")
    shown = shortened(text)
    if not (text.isascii() and text.isprintable()):
        raise InputError(f"The SMILES {shown} has characters that are not printable ASCII.")
    if " " in text:
        raise InputError(f"The SMILES {shown} has a space inside.")
    with one_molecule(text):
        if len(text) > LONG_SMILES:
            _limit_rings(text, shown)
        return _read_strictly(text) or _read_leniently(text, shown)


def _read_strictly(text: str) -> Chem.Mol | None:
    """What RDKit makes of a SMILES; removing hydrogens, nearly half of that work, only where it has atoms of them."""
    mol = Chem.MolFromSmiles(text, _KEEPING_HYDROGENS)
    if mol is None or mol.GetNumHeavyAtoms() < mol.GetNumAtoms():
        return Chem.MolFromSmiles(text)
    return mol


def _limit_rings(text: str, shown: str) -> None:
    """Raises InputError if a SMILES has more than ``MAX_RINGS`` independent rings, without looking for them."""
    mol = Chem.MolFromSmiles(text, sanitize=False)
    if mol is not None:
        rings = mol.GetNumBonds() - mol.GetNumAtoms() + len(Chem.GetMolFrags(mol))
        if rings > MAX_RINGS:
            raise InputError(f"The SMILES {shown} has {rings:,} rings; at most {MAX_RINGS:,} are read.")


def _read_leniently(text: str, shown: str) -> Chem.Mol:
    """Reads what the strict parser refused, if only valences of metals or metalloids stand in the way."""
    mol = Chem.MolFromSmiles(text, sanitize=False)
    if mol is None:
        raise InputError(f"{shown} is not a valid SMILES.")
    for problem in Chem.DetectChemistryProblems(mol):
        is_valence = problem.GetType() == "AtomValenceException"
        if not is_valence or mol.GetAtomWithIdx(problem.GetAtomIdx()).GetSymbol() in _FIXED_VALENCE:
            reason = " ".join(problem.Message().split())
            raise InputError(f"The SMILES {shown} describes an impossible molecule: {reason}.")
    mol.UpdatePropertyCache(strict=False)
    Chem.SanitizeMol(mol, Chem.SANITIZE_ALL ^ Chem.SANITIZE_PROPERTIES)
    return mol


def penalized_logp(mol_or_smiles: Chem.Mol | str) -> float:
    """Returns the ZINC benchmark's target: logP, less the synthetic accessibility score, less the long-cycle penalty.

    The terms are Crippen's logP, minus the SA score of Ertl and Schuffenhauer (2009) and minus ``excess_cycle_length``.
    Each is normalised by its mean and standard deviation over ZINC, then they are summed, as in Jin et al. (2018).

    Raises:
        InputError: the SMILES cannot be read (see ``read_smiles``), the molecule has no atoms, or RDKit fails on it.
    """
    mol = read_smiles(mol_or_smiles) if isinstance(mol_or_smiles, str) else mol_or_smiles
    if mol.GetNumAtoms() == 0:
        raise InputError("A molecule without atoms has no penalized logP.")
    with one_molecule():
        logp = Crippen.MolLogP(mol)
        sa_score = sascorer.calculateScore(mol)
    return (
        (logp - LOGP_MEAN) / LOGP_STD
        + (-sa_score - NEGATIVE_SA_MEAN) / NEGATIVE_SA_STD
        + (-excess_cycle_length(mol) - NEGATIVE_CYCLE_MEAN) / NEGATIVE_CYCLE_STD
    )


def excess_cycle_length(mol: Chem.Mol) -> int:
    """Returns by how many atoms the longest cycle of the benchmark's cycle basis exceeds six, 0 if it does not.

    The basis is Paton's (1969), grown from the first atom, as ``networkx.cycle_basis`` finds it.  In bridged systems it
    may hold longer cycles than the smallest rings, and other ones for another order of the atoms: adamantane, all of
    whose smallest rings have six atoms, counts two.
    """
    neighbors = [sorted(other.GetIdx() for other in atom.GetNeighbors()) for atom in mol.GetAtoms()]
    parent: dict[int, int] = {}
    linked: dict[int, set[int]] = {}
    longest = 0
    for root in range(len(neighbors)):
        if root in linked:
            continue
        parent[root], linked[root], stack = root, set(), [root]
        while stack:
            atom = stack.pop()
            for other in neighbors[atom]:
                if other not in linked:
                    parent[other], linked[other] = atom, {atom}
                    stack.append(other)
                elif other not in linked[atom]:
                    ancestor, length = parent[atom], 3
                    while ancestor not in linked[other]:
                        ancestor, length = parent[ancestor], length + 1
                    linked[other].add(atom)
                    longest = max(longest, length)
    return max(longest - 6, 0)


def murcko_scaffold(smiles: str) -> str:
    """Returns the canonical SMILES, without stereo, of the Bemis-Murcko scaffold (1996); '' without rings.

    Raises:
        InputError: the SMILES cannot be read (see ``read_smiles``), or RDKit fails on the molecule.
    """
    mol = read_smiles(smiles)
    with one_molecule(smiles):
        scaffold = Chem.MurckoDecompose(mol)
        scaffold.ClearComputedProps()
        scaffold.UpdatePropertyCache(strict=False)
        Chem.GetSymmSSSR(scaffold)
        return Chem.MolToSmiles(scaffold, isomericSmiles=False)
