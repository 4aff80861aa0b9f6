"""Writes the embedded sample: 5,000 drug-like molecules assembled at random from the pieces below, with penalized logP.

    python data/make_sample.py

Pieces are joined at their attachment points.  The number of a point says what it takes, so that bonds such as N-O, O-O
or N-C-N do not arise by chance:

    [1*]  a carbon that takes every kind
    [2*]  a nitrogen, oxygen or sulfur; takes 1 and 4
    [3*]  a carbon beside a heteroatom; takes 1, 3 and 4
    [4*]  a carbonyl or sulfonyl; takes 1, 2 and 3
    [5*]  a halogen or another group that takes only 1
"""

import csv
import gzip
import io
import random
from collections.abc import Iterator
from pathlib import Path

from rdkit import Chem

from graphormer_sepnorm.chem.properties import penalized_logp

SAMPLE = Path(__file__).parents[1] / "graphormer_sepnorm" / "resources" / "sample.csv.gz"
SEED = 20240607
SPLIT_SIZES = {"train": 4000, "val": 500, "test": 500}
MIN_ATOMS, MAX_ATOMS = 8, 38

TAKES = {1: {1, 2, 3, 4, 5}, 2: {1, 4}, 3: {1, 3, 4}, 4: {1, 2, 3}, 5: {1}}

BENZENES = """
    [1*]c1ccccc1 [1*]c1ccc([1*])cc1 [1*]c1cccc([1*])c1 [1*]c1ccccc1[1*] [1*]c1ccc([1*])c([1*])c1
    [1*]c1cc([1*])cc([1*])c1 [1*]c1ccc([1*])cc1[1*] [1*]c1cccc([1*])c1[1*]
"""

HETEROAROMATICS = """
    [1*]c1cccnc1 [1*]c1ccncc1 [1*]c1ccc([1*])nc1 [1*]c1cc([1*])ncn1 [1*]c1cnc([1*])nc1 [1*]c1cnccn1 [1*]c1ccc([1*])nn1
    [1*]c1ccc([1*])s1 [1*]c1ccsc1[1*] [1*]c1ccc([1*])o1 [1*]c1csc([1*])n1 [1*]c1cnc([1*])o1 [1*]c1noc([1*])c1
    [1*]c1nnc([1*])o1 [1*]c1nnc([1*])s1 [1*]c1noc([1*])n1 [1*]c1cn([2*])nc1[1*] [1*]c1ccn([2*])n1 [1*]c1cnn([2*])c1
    [1*]c1cn([2*])cn1 [2*]n1ccnc1[1*] [2*]n1cccc1[1*] [1*]c1nnn([2*])c1 [1*]c1nc([1*])n([2*])n1 [1*]c1nnnn1[2*]
    [1*]c1ccc2ccccc2c1 [1*]c1cccc2cccnc12 [1*]c1ccc2nc([1*])ccc2c1 [1*]c1ncnc2ccccc12 [1*]c1cnc2ccccc2n1
    [1*]c1c[nH]c2ccc([1*])cc12 [1*]c1cn([2*])c2ccccc12 [1*]c1nc2ccccc2n1[2*] [1*]c1nc2cc([1*])ccc2s1 [1*]c1nc2ccccc2o1
    [1*]c1cc2ccccc2o1 [1*]c1cc2cc([1*])ccc2[nH]1 [1*]c1nc2ccccn2c1[1*] [1*]c1ncc2nc[nH]c2n1 [1*]c1cc2c(s1)CCCC2
    [1*]c1ccc2OCOc2c1 [1*]c1ccc2OCCOc2c1 [1*]c1ccc2CCCc2c1 [1*]c1ccc2c(c1)CCCN2[2*] [1*]c1cc(=O)c2ccccc2o1
    [3*]C1=NN([5*])C(=O)CC1 [1*]c1ccc(=O)n([5*])n1 [5*]n1c(=O)c2ccccc2nc1[1*] [1*]c1cc(=O)[nH]c([1*])n1
"""

ALIPHATIC_RINGS = """
    [1*]C1CC1 [1*]C1CC1[3*] [1*]C1CCC1 [1*]C1CCCC1 [1*]C1CCCCC1 [1*]C1CCC([1*])CC1 [1*]C1CCC(C)CC1 [1*]C1CC=CCC1
    [2*]N1CCCC1 [2*]N1CCCC1[3*] [2*]N1CCCCC1 [2*]N1CCC([1*])CC1 [2*]N1CCCC([1*])C1 [2*]N1CCCCC1[3*] [2*]N1CCC1
    [2*]N1CC([1*])C1 [2*]N1CCN([2*])CC1 [2*]N1CCOCC1 [2*]N1CCSCC1 [2*]N1CCS(=O)(=O)CC1 [2*]N1CCOC([3*])C1
    [2*]N1CCN([5*])C(=O)C1 [3*]C1CCCO1 [1*]C1CCOCC1 [1*]C1CCOC1 [1*]C1CCS(=O)(=O)C1 [1*]C1CC(=O)N([5*])C1
    [3*]C1CCC(=O)N1[5*] [5*]N1C(=O)CCC1=O [5*]N1C(=O)NC([3*])C1=O [5*]N1C(=O)c2ccccc2C1=O [2*]N1CCc2ccccc2C1
    [2*]N1CCc2ccccc12 [2*]N1CCOc2ccccc12 [1*]C1CCc2ccccc12 [1*]C1CC[NH+]([5*])CC1 [5*][NH+]1CCN([2*])CC1
    [5*][NH+]1CCCC1 [5*][NH+]1CCOCC1 [1*]C1CCC[NH2+]C1 [3*]C1C[NH2+]CCO1 [1*]C1CC2CCC1C2 [1*]C12CC3CC(CC(C3)C1)C2
    [2*]N1CC2CCC(C1)O2 [2*]N1CCC2(CC1)OCCO2
"""

LARGE_RINGS = """
    [1*]C1CCCCCC1 [2*]N1CCCCCC1 [2*]N1CCCN([2*])CC1 [5*][NH+]1CCCN([2*])CC1 [2*]N1CCOc2ccccc2C1 [2*]N1CCCCCC1[3*]
    [1*]c1ccc2OCCCOc2c1 [1*]c1nnc2n1CCCCC2 [1*]C1CCCCCCC1 [2*]N1CCCCCCC1 [1*]C1CCCCCCCC1 [1*]c1ccc2NC(=O)CCCc2c1
    [2*]N1CCCCc2ccccc12 [2*]N1c2ccccc2CCc2ccccc12 [1*]C1=Nc2ccccc2NC(=O)C1 [3*]C1CCCCC(=O)N1[5*]
"""

LINKERS = """
    [4*]C(=O)N[2*] [4*]C(=O)N[2*] [4*]C(=O)N[2*] [4*]C(=O)N(C)[2*] [4*]S(=O)(=O)N[2*] [4*]C(=O)[4*] [4*]S(=O)(=O)[4*]
    [2*]NC(=O)N[2*] [2*]NC(=S)N[2*] [2*]NC(=O)C(=O)N[2*] [4*]C(=O)O[5*] [5*]NC(=O)O[5*] [5*]O[5*] [5*]N[5*] [5*]S[5*]
    [1*]C[1*] [1*]C[1*] [1*]CC[1*] [1*]CCC[1*] [1*]C(C)[1*] [3*]C=C[3*] [3*]C#C[3*] [2*]OC[3*] [5*]OCC[1*] [5*]NC[3*]
    [5*]SC[3*] [4*]C(=O)NC[3*] [4*]C(=O)NC(C)[3*] [4*]C(=O)NCC[1*] [4*]C(=O)CO[5*] [2*]NC(=O)CO[5*] [2*]NC(=O)CS[5*]
    [2*]NC(=O)C[1*] [2*]NC(=O)CC[1*] [2*]NC(=O)C=C[3*] [4*]C(=O)NN=C[3*] [4*]S(=O)(=O)NCC[1*] [3*]C[NH2+]C[3*]
    [3*]C[NH+](C)C[3*] [3*]C(O)C[1*] [3*]CSC[3*] [3*]COC[3*] [3*]CNC(=O)NC[3*] [1*]CC(=O)N[2*] [4*]C(=O)C[1*]
    [5*]OCC(O)C[1*] [3*]C(C)OC(=O)[4*]
"""

SUBSTITUENTS = """
    [1*]C [1*]C [1*]C [1*]C [1*]CC [1*]C(C)C [3*]C(C)(C)C [1*]CCC [1*]CC(C)C [1*]CCCC [1*]CC=C [1*]CC#C [3*]C=C
    [5*]F [5*]F [5*]F [5*]F [5*]F [5*]Cl [5*]Cl [5*]Cl [5*]Cl [5*]Br [5*]Br [5*]I [3*]C(F)(F)F [3*]C(F)(F)F
    [5*]OC(F)F [5*]OC(F)(F)F [5*]C#N [5*][N+](=O)[O-] [5*]OC [5*]OC [5*]OC [5*]OCC [5*]O [5*]N [2*]N(C)C [2*]NC
    [5*]SC [5*]NC(C)=O [5*]NS(C)(=O)=O [4*]C(C)=O [4*]C(N)=O [4*]C(=O)OC [4*]C(=O)OCC [4*]S(C)(=O)=O [4*]S(N)(=O)=O
    [4*]C(=O)N(C)C [4*]C(=O)NC [3*]C(=O)[O-] [3*]CC(=O)[O-] [3*]C[NH3+] [3*]CC[NH3+] [3*]C[NH+](C)C [3*]C[NH2+]C
    [3*]CO [1*]CCO [1*]CCOC [3*]C(C)(C)O [5*]P(=O)(OCC)OCC
"""

RING_KINDS = [kind.split() for kind in (BENZENES, HETEROAROMATICS, ALIPHATIC_RINGS, LARGE_RINGS)]
RING_WEIGHTS = (35, 32, 30, 3)


def open_points(mol: Chem.Mol) -> list[int]:
    """Returns the indices of the attachment points."""
    return [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetAtomicNum() == 0]


def join(mol: Chem.Mol, point: int, smiles: str, rng: random.Random) -> Chem.Mol:
    """Returns ``mol`` with a piece bonded at an attachment point, or ``mol`` itself if the piece does not fit there."""
    piece = Chem.MolFromSmiles(smiles)
    takes = TAKES[mol.GetAtomWithIdx(point).GetIsotope()]
    fitting = [i for i in open_points(piece) if piece.GetAtomWithIdx(i).GetIsotope() in takes]
    if not fitting:
        return mol
    partner = mol.GetNumAtoms() + rng.choice(fitting)
    joined = Chem.RWMol(Chem.CombineMols(mol, piece))
    ends = [joined.GetAtomWithIdx(i).GetNeighbors()[0].GetIdx() for i in (point, partner)]
    joined.AddBond(*ends, Chem.BondType.SINGLE)
    joined.RemoveAtom(partner)
    joined.RemoveAtom(point)
    return joined.GetMol()


def random_ring_kind(rng: random.Random) -> list[str]:
    """Returns the ring systems of one kind, drawn by weight."""
    return rng.choices(RING_KINDS, RING_WEIGHTS)[0]


def assemble(rng: random.Random) -> Chem.Mol:
    """Returns one molecule with open points, grown piece by piece from a ring system towards a random size."""
    size = rng.gauss(23.8, 4.5)
    mol = Chem.MolFromSmiles(rng.choice(random_ring_kind(rng)))
    while (points := open_points(mol)) and (missing := size - mol.GetNumAtoms() + len(points)) > 0:
        point = rng.choice(points)
        on_ring = mol.GetAtomWithIdx(point).GetNeighbors()[0].IsInRing()
        if missing < 5 or (len(points) > 1 and rng.random() < 0.4):
            pieces = SUBSTITUENTS.split()
        elif on_ring and rng.random() < 0.85:
            pieces = LINKERS.split()
        else:
            pieces = random_ring_kind(rng)
        mol = join(mol, point, rng.choice(pieces), rng)
    return mol


def close(mol: Chem.Mol, rng: random.Random) -> Chem.Mol:
    """Returns the molecule with its open points closed and a random configuration at every stereocentre of carbon.

    Carbonyls and sulfurs get a methyl group, all others a hydrogen.
    """
    mol = Chem.RWMol(mol)
    for point in open_points(mol):
        atom = mol.GetAtomWithIdx(point)
        methyl = atom.GetIsotope() == 4 or atom.GetNeighbors()[0].GetSymbol() == "S"
        mol.ReplaceAtom(point, Chem.Atom("C" if methyl else "H"))
    Chem.SanitizeMol(mol)
    mol = Chem.RemoveHs(mol)
    for index, _ in Chem.FindMolChiralCenters(mol, includeUnassigned=True):
        if mol.GetAtomWithIdx(index).GetSymbol() == "C":
            tag = rng.choice((Chem.ChiralType.CHI_TETRAHEDRAL_CW, Chem.ChiralType.CHI_TETRAHEDRAL_CCW))
            mol.GetAtomWithIdx(index).SetChiralTag(tag)
    return mol


def molecules(rng: random.Random) -> Iterator[str]:
    """Yields canonical SMILES without end, no two of them stereoisomers."""
    seen = set()
    while True:
        mol = close(assemble(rng), rng)
        flat = Chem.MolToSmiles(mol, isomericSmiles=False)
        if flat not in seen and MIN_ATOMS <= mol.GetNumAtoms() <= MAX_ATOMS:
            seen.add(flat)
            yield Chem.CanonSmiles(Chem.MolToSmiles(mol))


def sample_rows(seed: int = SEED) -> Iterator[tuple[str, str, str]]:
    """Yields SMILES, split and target of every molecule; the same ones for the same seed and release of RDKit."""
    rng = random.Random(seed)
    splits = [split for split, size in SPLIT_SIZES.items() for _ in range(size)]
    rng.shuffle(splits)
    for split, smiles in zip(splits, molecules(rng), strict=False):
        yield smiles, split, f"{penalized_logp(smiles):.5f}"


def write_sample(path: Path) -> None:
    """Writes the table; its bytes carry no time and no file name, so they repeat."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("smiles", "split", "penalized_logp"))
    writer.writerows(sample_rows())
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


if __name__ == "__main__":
    write_sample(SAMPLE)
    print(f"{SAMPLE}: {SAMPLE.stat().st_size:,} bytes")
