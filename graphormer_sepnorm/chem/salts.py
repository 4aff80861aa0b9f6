"""The parent of a salt, a solvate or a mixture: the part that is left without counter-ions and solvents."""

import functools
from typing import Any

from rdkit import Chem

from graphormer_sepnorm.chem.smiles import one_molecule

# Parts that are removed as long as another kind of part is left, the first kind first. They are compared without
# stereo, isotopes and charge, so any drawing of them will do. The lists contain those of RDKit and ChEMBL; single
# atoms, such as water and ions of metals, are of the first kind, but only ``USUAL_ATOMS`` are removed without a word.
INORGANIC = """
OO O=[N+]([O-])O O=[N+][O-] OS(=O)(=O)O OS(=O)O OP(=O)(O)O OP(=O)O OP=O OP(=O)=O OP(=O)(O)OP(=O)(O)O OP(=O)(O)F
OS(=O)(=O)F OS(=O)(=O)OOS(=O)(=O)O NS(=O)(=O)O OC(=O)O OB(O)O SC#N C#N OC#N S=C=S O=C=O OCl(=O)(=O)=O OCl(=O)=O
OBr(=O)=O OI(=O)=O F[B-](F)(F)F F[P-](F)(F)(F)(F)F F[Sb-](F)(F)(F)(F)F F[As-](F)(F)(F)(F)F F[Si-2](F)(F)(F)(F)F
[N-]=[N+]=[N-] [I-](I)I
"""
SOLVENTS = """
CO CCO CCCO CC(C)O CCCCO CC(C)CO CCC(C)O CC(C)(C)O OCCO CC(O)CO COCCO COCCOC CC(C)=O CCC(C)=O CC(=O)CC(C)C CC#N
CCOC(C)=O COC(C)=O CC(=O)OC(C)C CCOC=O CCCC(=O)OCC CCOCC CC(C)OC(C)C COC(C)(C)C C1CCOC1 CC1CCCO1 C1COCCO1 ClCCl
ClC(Cl)Cl ClC(Cl)(Cl)Cl ClCCCl CI CN(C)C=O CN(C)C(C)=O CN1CCCC1=O CS(C)=O CS(C)(=O)=O C[N+](=O)[O-] c1ccccc1 Cc1ccccc1
Cc1ccccc1C Cc1cccc(C)c1 Cc1ccc(C)cc1 Clc1ccccc1 c1ccncc1 CCCCC CCCCCC CCCCCCC C1CCCCC1 CC1CCCCC1 OC(F)(F)C(F)(F)F
OCC(F)(F)F CN(C)P(=O)(N(C)C)N(C)C CCCC=O NC(N)=O NC=O
"""
COUNTER_IONS = """
OC=O CC(=O)O CCC(=O)O OC(=O)C(F)(F)F OC(=O)C(Cl)Cl OC(=O)C(Cl)(Cl)Cl OCC(=O)O CC(O)C(=O)O OC(=O)C(=O)O OC(=O)CC(=O)O
OC(=O)C=CC(=O)O OC(=O)CCC(=O)O OC(=O)CCCC(=O)O OC(=O)CCCCC(=O)O OC(=O)CCCCCCCCC(=O)O OC(=O)CC(O)C(=O)O
OC(=O)C(O)C(O)C(=O)O OC(=O)CC(O)(CC(=O)O)C(=O)O OC(=O)CCC(=O)C(=O)O OC(=O)C(O)C(O)C(O)C(O)C(=O)O
OC(=O)C(O)C(OC(=O)c1ccccc1)C(=O)O OC(=O)C(OC(=O)c1ccccc1)C(OC(=O)c1ccccc1)C(=O)O
OC(=O)C(OC(=O)c1ccc(C)cc1)C(OC(=O)c1ccc(C)cc1)C(=O)O CC(=O)NCC(=O)O CC(=O)CCC(=O)O CCCCCC(=O)O CCCCCCC(=O)O
CCCCCCCC(=O)O CCCCCCCCCC(=O)O CCCCCCCCCCC(=O)O CCCCCCCCCCCC(=O)O CCCCCCCCCCCCCCCC(=O)O CCCCCCCCCCCCCCCCCC(=O)O
CCCCCCCCC=CCCCCCCCC(=O)O OC(=O)CCCCCCCCC=C CC(C)C(=O)O CC(C)(C)C(=O)O CC(C)(C)CC(=O)O CC=C(C)C(=O)O CCCCC1CCC(CC1)C(=O)O
CC12CCC(CC1)(C=C2)C(=O)O OC(=O)CCC1CCCC1 CN(C)CCC(=O)O CCOC(=O)O CCC(CC)C(=O)OCO OCC(O)C(O)C(O)C(O)C(O)C(=O)O
OCC(O)C(OC1OC(CO)C(O)C(O)C1O)C(O)C(O)C(=O)O OC1OC(C(O)C(O)C1O)C(=O)O O=CC(O)C(O)C(O)C(O)C(=O)O OCC(O)CO
OCC(O)COP(=O)(O)O OCC(CO)OP(=O)(O)O CS(=O)(=O)O CCS(=O)(=O)O OCCS(=O)(=O)O OS(=O)(=O)CCS(=O)(=O)O OS(=O)(=O)CS(=O)(=O)O
OS(=O)(=O)C(F)(F)F OS(=O)(=O)C(F)(F)C(F)(F)C(F)(F)C(F)(F)F OS(=O)(=O)c1ccccc1 Cc1ccc(cc1)S(=O)(=O)O
Cc1cc(C)c(c(C)c1)S(=O)(=O)O OS(=O)(=O)c1ccc(Cl)cc1 OS(=O)(=O)c1ccc2ccccc2c1 OS(=O)(=O)c1cccc2ccccc12
OS(=O)(=O)c1cccc2c(cccc12)S(=O)(=O)O OS(=O)(=O)c1ccc2cc(ccc2c1)S(=O)(=O)O CC1(C)C2CCC1(CS(=O)(=O)O)C(=O)C2
OS(=O)(=O)NC1CCCCC1 COS(=O)(=O)O CCOS(=O)(=O)O CCCCCCCCCCCCOS(=O)(=O)O CC(=O)OS(=O)(=O)O OC(=O)c1cccc(c1)S(=O)(=O)O
OC(=O)c1cccc(c1O)S(=O)(=O)O OC(=O)c1ccc(O)c(c1)S(=O)(=O)O CC1(C)C(CCC1(C)C(=O)O)C(=O)O OC(=O)c1ccccc1 OC(=O)c1ccc(O)cc1
OC(=O)c1cc(O)ccc1O OC(=O)c1ccc(cc1)C(=O)O OC(=O)c1ccccc1C(=O)c1ccc(O)cc1 CC(=O)Nc1ccc(cc1)C(=O)O OC(=O)C=Cc1ccccc1
OC(=O)CCc1ccccc1 OC(=O)C(c1ccccc1)(c1ccccc1)c1ccccc1 OC(=O)c1occc1 OC(=O)CNC(=O)c1ccccc1 OC(C(=O)O)c1ccccc1
OC(=O)c1ccc2ccccc2c1O OC(=O)c1cc2ccccc2cc1O OC(=O)c1cc2ccccc2c(Cc2c(O)c(cc3ccccc23)C(=O)O)c1O
Oc1c(cc(cc1[N+](=O)[O-])[N+](=O)[O-])[N+](=O)[O-] Nc1ccc(cc1)P(=O)(O)O Cn1c(=O)c2[nH]c(Cl)nc2n(C)c1=O
CCCCCCCCCCCCCCOP(=O)(O)O OC(=O)CN(CCN(CC(=O)O)CC(=O)O)CC(=O)O COC(=O)CC(O)(CCCC(C)(C)O)C(=O)O CSCCC(N)C(C)=O
Oc1cc(Cl)c(Cl)cc1Cl Fc1c(F)c(F)c(c(F)c1F)[B-](c1c(F)c(F)c(F)c(F)c1F)(c1c(F)c(F)c(F)c(F)c1F)c1c(F)c(F)c(F)c(F)c1F
c1ccc(cc1)[B-](c1ccccc1)(c1ccccc1)c1ccccc1 CN CNC CN(C)C CCN CCNCC CCN(CC)CC CCCN CC(C)N CC(C)NC(C)C CCN(C(C)C)C(C)C
CCCCN CC(C)(C)N NC1CCCCC1 C1CCC(CC1)NC1CCCCC1 NCCN OCCN NCCCO NCCOCCO OCCNCCO OCCN(CCO)CCO CC(O)CN CC(O)CNCC(C)O
CC(O)CN(CC(C)O)CC(C)O CC(C)(N)CO CN(C)CCO CCN(CC)CCO CNCCO CC(O)CN(C)C NC(CO)(CO)CO CC(N)(CO)CO CNCC(O)C(O)C(O)C(O)CO
CCNCC(O)C(O)C(O)C(O)CO NCC(O)C(O)C(O)C(O)CO C1CNCCN1 CN1CCNCC1 C1CCNCC1 C1CCNC1 C1COCCN1 CN1CCOCC1 OCCN1CCOCC1
OCCN1CCCC1 c1c[nH]cn1 CCN1CCCCC1 C1CN2CCN1CC2 C1CCC2=NCCCN2CC1 C1CCN2CCCN=C2C1 N=C(N)N CN(C)C(=N)N(C)C
c1ccc(cc1)CNCCNCc1ccccc1 c1ccc(cc1)CCNCc1ccccc1 NCc1ccccc1 CC(N)c1ccccc1 CC(N)c1cccc2ccccc12 NC(c1ccccc1)C(N)c1ccccc1
Nc1ccccc1 CN(C)c1ccncc1 Cc1cccc(C)n1 C[N+](C)(C)C CC[N+](CC)(CC)CC CCC[N+](CCC)(CCC)CCC CCCC[N+](CCCC)(CCCC)CCCC
C[N+](C)(C)Cc1ccccc1 C[P+](c1ccccc1)(c1ccccc1)c1ccccc1 c1ccc(cc1)[P+](c1ccccc1)(c1ccccc1)c1ccccc1
CC(C)C1CCC2(C)C1CCC(C)(CNCCNCC1(C)CCCC3(C)C1CCc1cc(ccc13)C(C)C)C2 C1COCCOCCOCCOCCOCCO1
"""
ALSO_DRUGS = """
NC(CCCNC(=N)N)C(=O)O NCCCCC(N)C(=O)O NCCCC(N)C(=O)O NC(Cc1c[nH]cn1)C(=O)O NCC(=O)O CNCC(=O)O CC(N)C(=O)O
NC(CC(=O)O)C(=O)O NC(CCC(=O)O)C(=O)O OC(=O)C1CCC(=O)N1 NCCS(=O)(=O)O C[N+](C)(C)CC(=O)O C[N+](C)(C)CCO
C[N+](C)(C)CC(O)CC(=O)O CC(=O)NC(CCC(=O)O)C(=O)O OCC(O)C(O)C(O)C(O)C(=O)O OCC(O)C1OC(=O)C(O)=C1O OC(=O)c1ccccc1O
OC(=O)c1cccnc1 OC(=O)c1cc(=O)[nH]c(=O)[nH]1 O=C1NS(=O)(=O)c2ccccc12 CC1=CC(=O)NS(=O)(=O)O1 OC(=O)Cc1ccccc1 CCCC(=O)O
CCCCC(=O)O CCCCC(CC)COC(=O)CC(C(=O)OCC(CC)CCCC)S(=O)(=O)O
"""
KINDS = (INORGANIC, SOLVENTS, COUNTER_IONS, ALSO_DRUGS)
USUAL_ATOMS = frozenset([1, 3, 4, 7, 8, 9, 11, 12, 13, 16, 17, 19, 20, 30, 35, 37, 38, 47, 53, 55, 56, 83, 87, 88])
NONMETALS = frozenset([*range(3), *range(5, 11), *range(14, 19), *range(32, 37), *range(51, 55), 85, 86])
COMPLEX = len(KINDS) - 0.5  # kind of an inorganic part with an unusual metal
DOUBTED = 2  # from this kind on, several different parts of the same kind could be the parent


def parent_part(mol: Chem.Mol) -> Chem.Mol:
    """The parent with its charge: sodium acetate becomes acetate; an inorganic salt only loses its water."""
    parts = parts_of(mol)
    if len(parts) == 1:
        return mol
    if all(kind <= 0 or kind == COMPLEX for kind in map(kind_of, parts)):
        parts = [part for part in parts if Chem.MolToSmiles(part) != "O"] or parts[:1]
        return functools.reduce(Chem.CombineMols, parts)
    return max(parts, key=rank)


def is_doubtful(mol: Chem.Mol) -> bool:
    """Whether several different parts could be the parent: none is a usual counter-ion, or all of them are."""
    parts = parts_of(mol)
    if len(parts) == 1:
        return False
    kinds = list(map(kind_of, parts))
    best = [part for part, kind in zip(parts, kinds, strict=True) if kind == max(kinds)]
    return max(kinds) >= DOUBTED and len(set(map(constitution, best))) > 1


def without_counter_ions(mol: Chem.Mol) -> Chem.Mol:
    """A molecule without its usual counter-ions and solvents; itself if it has nothing else, or none of them."""
    parts = parts_of(mol)
    kept = [part for part in parts if kind_of(part) > len(KINDS) - 1]
    return functools.reduce(Chem.CombineMols, kept) if 0 < len(kept) < len(parts) else mol


def is_usual(part: Chem.Mol) -> bool:
    """Whether a part is a usual counter-ion or solvent."""
    return kind_of(part) in range(len(KINDS))


def parts_of(mol: Chem.Mol) -> list[Chem.Mol]:
    """The parts that are not bonded to each other; a single one is the molecule itself."""
    with one_molecule():
        if len(Chem.GetMolFrags(mol)) == 1:
            return [mol]
        return list(Chem.GetMolFrags(mol, asMols=True, sanitizeFrags=False))


def rank(part: Chem.Mol) -> tuple[float, int, float, str]:
    """The order of parts by their kind, then heavy atoms, weight and SMILES, whatever the order of writing."""
    with one_molecule():
        weight = sum(atom.GetMass() for atom in part.GetAtoms())
        return kind_of(part), part.GetNumHeavyAtoms(), weight, Chem.MolToSmiles(part)


def kind_of(part: Chem.Mol) -> float:
    """The place in ``KINDS``, their number if organic, 0 for a salt drawn with bonds, -1 for an unusual single atom."""
    elements, heavy = {atom.GetAtomicNum() for atom in part.GetAtoms()}, part.GetNumHeavyAtoms()
    organic = bool(elements & {0, 6})  # a wildcard is taken for a carbon
    if heavy <= 1 and not organic:
        return 0 if elements <= USUAL_ATOMS else -1
    metals = elements - NONMETALS
    other = len(KINDS) if organic else COMPLEX if metals - USUAL_ATOMS else 0 if metals else DOUBTED - 0.5
    usual = usual_parts(heavy)
    return usual.get(constitution(part), other) if usual else other


@functools.cache
def usual_parts(heavy: int) -> dict[str, int]:
    """The places in ``KINDS`` of the parts with this number of heavy atoms, by their ``constitution``."""
    return {constitution_of(text): place for text, place, size in listed_parts() if size == heavy}


@functools.cache
def listed_parts() -> list[tuple[str, int, int]]:
    """The SMILES of the parts in ``KINDS``, their places, and their numbers of heavy atoms."""
    texts = [(text, place) for place, kind in enumerate(KINDS) for text in kind.split()]
    return [(text, place, Chem.MolFromSmiles(text, sanitize=False).GetNumHeavyAtoms()) for text, place in texts]


def constitution(part: Chem.Mol) -> str:
    """The same text for any drawing of a part, its stereo, isotopes and charge; raises InputError if RDKit fails."""
    with one_molecule():
        return constitution_of(Chem.MolToSmiles(part))


@functools.lru_cache(10_000)
def constitution_of(smiles: str) -> str:
    """As ``constitution``: the first block of the InChIKey; a SMILES if there is none, as for a wildcard atom."""
    with one_molecule(smiles):
        mol = Chem.MolFromSmiles(smiles, sanitize=False)
        mol.UpdatePropertyCache(strict=False)
        Chem.SanitizeMol(mol, Chem.SANITIZE_ALL ^ Chem.SANITIZE_PROPERTIES)
        flat = uncharged(mol)
        return Chem.MolToInchiKey(flat)[:14] or Chem.MolToSmiles(flat, isomericSmiles=False)


def parent_without_metals(mol: Chem.Mol) -> Chem.Mol:
    """``parent_part`` after metals with bonds are disconnected, unless nothing organic is left, as of cisplatin."""
    if not any(atom.GetAtomicNum() not in NONMETALS and atom.GetDegree() for atom in mol.GetAtoms()):
        return parent_part(mol)
    part = parent_part(without_bonds_of_metals(mol))
    return part if len(parts_of(part)) == 1 and kind_of(part) >= DOUBTED else parent_part(mol)


def without_bonds_of_metals(mol: Chem.Mol) -> Chem.Mol:
    """A copy in which metals are ions, but not those of most metal alkyls; raises InputError if RDKit fails."""
    with one_molecule():
        return metal_disconnector().Disconnect(Chem.Mol(mol))


@functools.cache
def metal_disconnector() -> Any:
    """RDKit's, which also takes sulfides and halides of alkali and alkaline earth metals for salts."""
    from rdkit.Chem.MolStandardize import rdMolStandardize  # its import takes a while

    found = rdMolStandardize.MetalDisconnector()
    metals, _ = found.MetalNof.split("~")
    heavier = "$([S,s,Se,Cl,Br,I]~[Li,Na,K,Rb,Cs,Mg,Ca,Sr,Ba;!$(*~[#6])])"
    found.SetMetalNof(Chem.MolFromSmarts(f"{metals}~[#7,#8,F,{heavier}]"))
    return found


def neutral_parent(mol: Chem.Mol) -> Chem.Mol:
    """``parent_without_metals``, ``uncharged``; raises InputError as it. A neutral molecule of one part is itself."""
    part = parent_without_metals(mol)
    with one_molecule():
        return uncharged(part)


def uncharged(mol: Chem.Mol) -> Chem.Mol:
    """A molecule without the charges that hydrogens can balance; itself if it has none."""
    if not any(charges_of(mol)):
        return mol
    from rdkit.Chem.MolStandardize import rdMolStandardize

    found = rdMolStandardize.Uncharger().uncharge(mol)
    return found if charges_of(found) != charges_of(mol) else mol


def charges_of(mol: Chem.Mol) -> list[int]:
    return [atom.GetFormalCharge() for atom in mol.GetAtoms()]
