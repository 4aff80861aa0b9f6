"""Reads SMILES with RDKit; a SMILES that cannot be read is explained in one sentence."""

import contextlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, product
from typing import Any

from rdkit import Chem, rdBase

from graphormer_sepnorm.chem.inchi import molecule_of_inchi
from graphormer_sepnorm.errors import InputError

MISSING = ("NoneType", "NAType", "NaTType")  # types of missing values of pandas, which need not be installed
MAX_SMILES_LENGTH = 20_000
MAX_BLOCK = 1_000_000
MAX_ATOMS = 1000  # a shorter SMILES has fewer atoms, and hardly ever as many rings
MAX_RINGS = 500
RINGS_PER_ATOM = 2  # boron cages have 1.6
INCHI = "InChI="
END_OF_STRUCTURE = "M  END"  # of a molfile
# The atoms of a V3000 molfile, which RDKit reads in quadratic time, so they are counted first.
ATOMS_OF_BLOCK = re.compile(r"^M  V30\s+BEGIN\s+ATOM\s*$(.*?)(?:^M  V30\s+END\s+ATOM|\Z)", re.MULTILINE | re.DOTALL)
HEAVY_ATOM = re.compile(r"^M  V30[^\S\n]+\S+[^\S\n]+(?![HDT]\s)\S", re.MULTILINE)
SPACE = "[ \t]+"  # ends a SMILES; a text with other white space is not a SMILES
ATOM_MAP = re.compile(r"(\[[^\[\]:]*):\d+\]")
Molecule = Chem.Mol | str | None  # already read, or a SMILES to read
# A word such as aspirin or 2-propanol; its small letters are not only those of aromatic atoms.
NAME = re.compile(r"(?=.*[ad-mq-rt-z])[\dNO,'-]*[A-Za-z][a-z]{3}[A-Za-z\d,'-]*")
NUMBER = re.compile(r"[-+]?(\d+([.,]\d+)?|[.,]\d+)([eE][-+]?\d+)?")
ID = re.compile(r"[A-Za-z]+([-_]\d+|\d{2,})")  # such as ABC-12 and V69; a formula such as CH4 is none
BRACKETS = (("square bracket", "[]"), ("parenthesis", "()"))
NOT_LOOKED_UP = "which is not looked up, so write the SMILES or the InChI of the molecule"
REGISTERED = {re.compile(r"\d{2,7}-\d\d-\d"): "a CAS number", re.compile(r"[A-Z]{14}-[A-Z]{10}-[A-Z]"): "an InChIKey"}
OPEN = re.compile(r" \||\*|#0")  # in the SMILES of what may be no whole molecule
LEAST_WRITTEN = 3  # atoms of a word after a SMILES that makes it a second molecule rather than a name
RING = re.compile(r"%\(\d+\)|%\d\d|\d")
SYMBOL = re.compile(rf"{RING.pattern}|Cl|Br|[BCNOPSFIbcnops*]|[-=#$:/\\.~()<>]")  # outside square brackets
_KEEPING_HYDROGENS = Chem.SmilesParserParams()
_KEEPING_HYDROGENS.removeHs = False  # type: ignore[assignment]  # RDKit's stubs take properties for classes
_FIXED_VALENCE = frozenset({"H", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Se", "Br", "I"})
POLYMERS = frozenset(["SRU", "MON", "MER", "COP", "CRO", "MOD", "GRA", "ANY"])  # types of groups of a molfile
MAX_GROUPS = 6  # of centres whose 2 to the power of this many mirror images are compared
RELATIVE = (Chem.StereoGroupType.STEREO_AND, Chem.StereoGroupType.STEREO_OR)


@contextlib.contextmanager
def one_molecule(smiles: str = "") -> Iterator[None]:
    """For RDKit calls on one molecule: silences RDKit and turns all its types of errors into InputError."""
    try:
        with rdBase.BlockLogs():
            yield
    except InputError:
        raise
    except Exception as error:
        reason = ", ".join(line.strip() for line in str(error).strip().splitlines()[:2]) or type(error).__name__
        molecule = quoted(smiles) if smiles else "the molecule"
        raise InputError(f"RDKit fails on {molecule}: {ascii(reason[:100])[1:-1]}.") from error


def quoted(smiles: str) -> str:
    """A SMILES in quotes, truncated if long."""
    return ascii(truncated(smiles, 60))


def truncated(text: str, length: int) -> str:
    """A text of at most ``length`` characters, which ends with "..." if it was longer."""
    return text if len(text) <= length else text[: length - 3] + "..."


def one_column(molecules: Any, name: str = "molecules") -> Any:
    """An array of molecules with one column, [M, 1], as [M], and one of Arrow as a list; others as they are."""
    if hasattr(molecules, "to_pylist"):
        return molecules.to_pylist()
    if getattr(molecules, "ndim", 1) == 1:
        return molecules
    if molecules.ndim == 2 and molecules.shape[1] == 1:
        return molecules[:, 0]
    raise InputError(f"{name} must be one column of SMILES, but the shape is {molecules.shape}")


def read_smiles(smiles: Chem.Mol | str | None) -> Chem.Mol:
    """Returns the sanitized molecule of a SMILES. None, for a row without a SMILES, is rejected like any other type.

    An InChI, a molfile or an RDKit molecule is converted to SMILES first, so that all of them give the same molecule. A
    name after a space is ignored, unless it is itself a SMILES, and so are atom maps, as in ``[CH3:1]``, which RDKit
    would treat as a difference between atoms. Raises InputError, which says what is wrong with it.
    """
    if isinstance(smiles, Chem.Mol):
        with one_molecule():
            refuse_incomplete(smiles)
            smiles = smiles_of(smiles)
    if type(smiles).__name__ in MISSING or (isinstance(smiles, float) and math.isnan(smiles)):
        raise InputError("The SMILES is missing.")
    if not isinstance(smiles, str):
        raise InputError(f"A SMILES must be a string, not {type(smiles).__name__}.")
    if END_OF_STRUCTURE in smiles:
        check_count("molfile", len(smiles), "characters", MAX_BLOCK)
        smiles = smiles_of_block(smiles.splitlines())
    elif not is_smiles(smiles):
        smiles, _ = smiles_of_inchi(smiles.strip())
    check_count("SMILES", len(smiles), "characters", MAX_SMILES_LENGTH)
    if not smiles.strip():
        raise InputError("The SMILES is empty: it has no atoms.")
    text = without_name(smiles.strip(" \t"))
    excerpt = quoted(smiles.strip(" \t"))
    if not (text.isascii() and text.isprintable()):
        raise InputError(f"The SMILES {excerpt} has characters that are not printable ASCII.")
    if text.replace("->", "").partition(" ")[0].count(">") == 2:
        raise InputError(f"{excerpt} is a reaction: give the SMILES of one molecule.")
    text = without_atom_maps(text)
    with one_molecule(text):
        if len(text) > MAX_ATOMS and (unsanitized := Chem.MolFromSmiles(text, sanitize=False)) is not None:
            check_size(unsanitized)
        mol = _read_strictly(text) or _read_leniently(text, excerpt)
        if OPEN.search(text):
            refuse_incomplete(mol)
            mol = with_settled_stereo(mol)
    check_count("molecule", mol.GetNumAtoms(), "atoms", MAX_ATOMS)  # with hydrogens that stay atoms
    return mol


def molecule_of(molecule: Molecule) -> Chem.Mol:
    """The molecule; a SMILES is read first, which raises InputError as ``read_smiles``."""
    return molecule if isinstance(molecule, Chem.Mol) else read_smiles(molecule)


def atoms_of(mol: Chem.Mol) -> list[Chem.Atom]:
    """The atoms of a molecule; twice as fast as GetAtoms()."""
    return [mol.GetAtomWithIdx(number) for number in range(mol.GetNumAtoms())]


def bonds_of(mol: Chem.Mol) -> list[Chem.Bond]:
    """The bonds of a molecule; twice as fast as GetBonds()."""
    return [mol.GetBondWithIdx(number) for number in range(mol.GetNumBonds())]


def without_atom_maps(text: str) -> str:
    """A SMILES without its atom maps; in a CXSMILES extension they become a property that RDKit ignores."""
    smiles, space, extension = text.partition(" ")
    return ATOM_MAP.sub(r"\1]", smiles) + space + extension.replace("molAtomMapNumber", "map")


def without_name(text: str) -> str:
    """A SMILES, with its CXSMILES extension if any, without the name that follows it."""
    smiles, *rest = re.split(SPACE, text, maxsplit=1)
    if not rest or not rest[0]:
        return smiles
    if rest[0].startswith("|"):
        return f"{smiles} |{rest[0][1:].partition('|')[0]}|"
    for place, word in enumerate(re.split(SPACE, rest[0])):
        with one_molecule(word):
            mol = Chem.MolFromSmiles(word, sanitize=bool(place)) if word.isascii() else None
            if mol is not None and (not place or mol.GetNumAtoms() >= LEAST_WRITTEN):
                raise InputError(f"The SMILES {quoted(text)} has a space inside: give one molecule in a row.")
    return smiles


def ignored_name(molecule: object) -> str:
    """A sentence on the text after a SMILES, which is ignored; "" if there is none."""
    if not isinstance(molecule, str) or not is_smiles(molecule):
        return ""
    read = without_name(molecule.strip(" \t"))
    return f"Read as {read}: the text after it was ignored." if len(molecule.split()) > len(read.split()) else ""


def is_smiles(text: str) -> bool:
    """Whether to read a text as SMILES: it is neither an InChI nor a molfile."""
    return not text.lstrip().startswith(INCHI) and END_OF_STRUCTURE not in text


@lru_cache(maxsize=1000)
def smiles_of_inchi(text: str) -> tuple[str, bool]:
    """As ``molecule_of_inchi``, as SMILES; raises InputError if the InChI is too long or RDKit cannot read it."""
    check_count("InChI", len(text), "characters", MAX_SMILES_LENGTH)
    with one_molecule(text):
        if read := molecule_of_inchi(text):
            return Chem.MolToSmiles(read[0]), read[1]
    raise InputError(f"{quoted(text)} is not a valid InChI.")


def guess(molecule: object) -> str:
    """The SMILES of a readable InChI that leaves open where a hydrogen or a charge is; "" for anything else."""
    if not isinstance(molecule, str) or is_smiles(molecule) or END_OF_STRUCTURE in molecule:
        return ""
    smiles, guessed = smiles_of_inchi(molecule.strip())
    return smiles if guessed else ""


def smiles_of_block(lines: list[str]) -> str:
    """The SMILES of a molfile, unsanitized if necessary; raises InputError if it is empty or too large."""
    block = "\n".join(lines).encode("ascii", "replace").decode()
    atoms = sum(len(HEAVY_ATOM.findall(part)) for part in ATOMS_OF_BLOCK.findall(block))
    check_count("molecule", atoms, "atoms", MAX_ATOMS)
    with one_molecule():
        if atoms and (unsanitized := Chem.MolFromMolBlock(block, sanitize=False)) is not None:
            check_size(unsanitized)
        mol = Chem.MolFromMolBlock(block) or Chem.MolFromMolBlock(block, sanitize=False)
        if mol is None:
            raise InputError("the record has no readable structure")
        refuse_incomplete(mol)
        return smiles_of(mol)


def _read_strictly(text: str) -> Chem.Mol | None:
    """Parses a SMILES. Hydrogens are removed, which is nearly half of the work, only if they are written as atoms."""
    mol = Chem.MolFromSmiles(text, _KEEPING_HYDROGENS)
    if mol is None or mol.GetNumHeavyAtoms() < mol.GetNumAtoms():
        return Chem.MolFromSmiles(text)
    return mol


def check_size(unsanitized: Chem.Mol) -> None:
    """RDKit takes gigabytes or minutes to find the rings of a molecule with many, so they are only counted here."""
    atoms = sum(atom.GetAtomicNum() != 1 for atom in unsanitized.GetAtoms())
    check_count("molecule", atoms, "atoms", MAX_ATOMS)
    rings = unsanitized.GetNumBonds() - unsanitized.GetNumAtoms() + len(Chem.GetMolFrags(unsanitized))
    most = min(MAX_RINGS, max(100, RINGS_PER_ATOM * atoms))
    if rings > most:
        raise InputError(f"The molecule has {rings:,} rings; at most {most:,} are read of {atoms:,} atoms.")


def check_count(owner: str, count: int, parts: str, most: int) -> None:
    if count > most:
        raise InputError(f"The {owner} has {count:,} {parts}; at most {most:,} are read.")


def syntax_problem(text: str) -> str:
    """The mistake in a text that RDKit cannot parse as SMILES; "" if it is none of the common ones."""
    smiles = text.partition(" ")[0]
    outside = re.sub(r"\[[^\[\]]*\]", "*", smiles)  # of square brackets
    strange, rings = SYMBOL.sub("", outside), Counter(int(number.strip("%()")) for number in RING.findall(outside))
    brackets = [(name, outside.count(pair[0]) - outside.count(pair[1])) for name, pair in BRACKETS]
    problems = (
        (NAME.fullmatch(text), "names are not looked up, write the SMILES of the molecule"),
        *((pattern.fullmatch(smiles), f"it is {kind}, {NOT_LOOKED_UP}") for pattern, kind in REGISTERED.items()),
        (NUMBER.fullmatch(smiles), "it looks like a number"),
        ("," in smiles, "leave out the comma and what is behind it"),
        *((more, f"a {name} is not {'closed' if more > 0 else 'opened'}") for name, more in brackets),
        (strange and ID.fullmatch(smiles), "ids are not looked up, write the SMILES of the molecule"),
        (strange, f"{strange[:1]!r} is no atom outside square brackets"),
        *((count % 2, f"ring {number} is not closed") for number, count in rings.items()),
    )
    return next((words for is_so, words in problems if is_so), "")


def in_words(message: str) -> str:
    """RDKit's message on an impossible molecule in plain words, if it is a common one; atoms are counted from 1."""
    message = " ".join(message.split())
    if match := re.fullmatch(r"Explicit valence for atom # (\d+) (\w+), (\d+), is greater than permitted", message):
        return f"atom {int(match[1]) + 1} ({match[2]}) has a valence of {match[3]}, which is too high"
    if match := re.fullmatch(r"non-ring atom (\d+) marked aromatic", message):
        return f"atom {int(match[1]) + 1} is written as aromatic, but is in no ring"
    if match := re.fullmatch(r"Can't kekulize mol\. Unkekulized atoms: (\d+).*", message):
        return f"the aromatic ring with atom {int(match[1]) + 1} has no Kekule structure; check hydrogens as in [nH]"
    return message


def _read_leniently(text: str, excerpt: str) -> Chem.Mol:
    """Reads a SMILES with an unusual valence of a metal or metalloid only, as seven molecules of ogbg-molhiv."""
    mol = Chem.MolFromSmiles(text, sanitize=False)
    if mol is None:
        reason = syntax_problem(text)
        raise InputError(f"{excerpt} is not a valid SMILES{': ' if reason else ''}{reason}.")
    for problem in Chem.DetectChemistryProblems(mol):
        is_valence = problem.GetType() == "AtomValenceException"
        if not is_valence or mol.GetAtomWithIdx(problem.GetAtomIdx()).GetSymbol() in _FIXED_VALENCE:
            raise InputError(f"The SMILES {excerpt} describes an impossible molecule: {in_words(problem.Message())}.")
    mol.UpdatePropertyCache(strict=False)
    Chem.SanitizeMol(mol, Chem.SANITIZE_ALL ^ Chem.SANITIZE_PROPERTIES)
    mol = Chem.RemoveHs(mol, sanitize=False)
    Chem.AssignStereochemistry(mol, cleanIt=True, force=True, flagPossibleStereoCenters=True)
    return mol


def refuse_incomplete(mol: Chem.Mol) -> None:
    """Raises InputError for a polymer, attachment points, R groups and other wildcards, and variable parts."""
    if any(group.GetProp("TYPE") in POLYMERS for group in Chem.GetMolSubstanceGroups(mol)):
        raise InputError("The structure is a polymer: give one molecule, such as its monomer.")
    for atom in mol.GetAtoms():
        if atom.HasProp("molAttchpt") or atom.GetAtomicNum() == 0:
            problem = "an open place (*), such as an R group, an attachment point or the end of a polymer's unit"
            raise InputError(f"The structure has {problem}: give one molecule.")
    if mol.HasProp("_molLinkNodes") or any(bond.HasProp("_MolFileBondEndPts") for bond in mol.GetBonds()):
        raise InputError("The structure has a variable part: give one molecule.")


def with_settled_stereo(mol: Chem.Mol) -> Chem.Mol:
    """The molecule of a racemate or of relative stereo, the same for both of its mirror images."""
    if not mol.GetStereoGroups():
        return mol
    settled, several = Chem.RWMol(mol), []
    for group in mol.GetStereoGroups():
        if (kind := group.GetGroupType()) in RELATIVE:
            centres = [atom.GetIdx() for atom in group.GetAtoms()]
            if len(centres) == 1:
                settled.GetAtomWithIdx(centres[0]).SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
            else:
                several.append((kind, centres))
    settled.SetStereoGroups([])
    turned = product(*([[], centres] for _, centres in several[:MAX_GROUPS]))
    best = Chem.RWMol(min((mirrored(settled, each) for each in turned), key=Chem.MolToSmiles))
    mirrors = [Chem.MolToSmiles(mirrored(best, [centres])) for _, centres in several]
    kept = [group for group, mirror in zip(several, mirrors, strict=True) if mirror != Chem.MolToSmiles(best)]
    best.SetStereoGroups([Chem.CreateStereoGroup(kind, best, centres) for kind, centres in kept])
    return best.GetMol()


def mirrored(mol: Chem.Mol, groups: Iterable[list[int]]) -> Chem.Mol:
    """A copy in which the centres of these groups are inverted, and labels of stereo are assigned again."""
    mirror = Chem.Mol(mol)
    for place in chain(*groups):
        mirror.GetAtomWithIdx(place).InvertChirality()
    Chem.AssignStereochemistry(mirror, cleanIt=True, force=True)
    return mirror


def smiles_of(mol: Chem.Mol) -> str:
    """The canonical SMILES, with an extension for racemic or relative stereo if there is any."""
    return Chem.MolToCXSmiles(mol, Chem.SmilesWriteParams(), Chem.CXSmilesFields.CX_ENHANCEDSTEREO)
