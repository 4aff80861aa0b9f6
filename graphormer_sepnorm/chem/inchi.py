"""Reads InChI, with its mobile hydrogens, as the ``(H2,6,9)`` of an amide, and charges where chemists draw them.

RDKit restores any form. Here hydrogens move in their group along alternating bonds, protons anywhere, to the lowest
``cost``.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from rdkit import Chem

MOST_FORMS = 100  # of one group that are compared
MOST_STEPS = 300  # of the search for paths from one atom
MOST_WORK = 5_000  # groups, times the atoms of the molecule, for which forms are compared
ROUNDS = 3  # over the groups, because the best form of one can depend on the others
CLOSE = 1.5  # a form is a guess if the cost of another one is at most so much higher
# Of each match. The numbers are rounded coefficients of a logistic regression, the choice among the forms of 1,600
# molecules as they are drawn in public tables; those of charges are estimated from acidities.
COSTS = {
    "a": -1.0, "[OX2H1][#6X3]": 4.0, "[OX2H1]C=N": 5.0, "[OX2H1][S,P]": 2.5, "[S,Se;X2H1][#6X3]": 2.5,
    "[NX2]=[S,P]": 4.0, "[NX2;!R]=[C;R]": 4.5, "[NX2;!R]=c": 6.5, "[NX2H1]=C": 1.5, "[NX2]=C[NX3H2]": 2.5,
    "[CX4][NX2]=C": 1.0, "a[NX2]=C": -1.5, "a[NX3H1]": -1.0, "N[NX2]=C": 2.5, "[NX2;R]=[NX2;R]": 5.0,
    "[OX2][NX2]=C": -2.5, "[O,S;X1]=C~[NX2;+0]=,:*": 6.5, "[O,S;X1]=c:[nX2;+0]": 1.5, "[nH+0]:n": -1.0,
    "[nH+0](:n):n": 3.0, "[nH]1:n:n:n:c1": 1.0, "[nH+0]:[c;!$(c=*)]-[!#1]": 1.0, "[nH+0;r6]": 2.0,
    "[nH;r5]:c1:c:c:c:c:c1": -1.5, "[nH;r5]:[cR2]:[n;r6]": -0.5, "[NX4+;!H0][a,S,$(C=[O,S,N])]": 6.0,
    "[n,NX3;+;!H0]": 3.0, "[NX3+;!H0]=C[NX3]": -2.5, "[NX2+;!H0]": 20.0, "[O,S;+]": 20.0, "[Cl,Br,I;H1]": 20.0,
    "[OX1-][#6]": 4.0, "[OX1-]C=O": -4.0, "[OX1-][CX4]": 6.0, "[N-,n-]": 4.0, "[SX1-]": 1.0,
}  # fmt: skip
HYDROGEN_HALIDE = Chem.MolFromSmarts("[Cl,Br,I;H1]")
PATTERNS = [(Chem.MolFromSmarts(text), value) for text, value in COSTS.items()]
GROUP = re.compile(r"\(H\d*-?\d*,([\d,]+)\)")
REPEATED = re.compile(r"(?:(\d+)\*)?(.*)")


@dataclass(frozen=True)
class Form:
    """A tautomer with localized double bonds."""

    hydrogens: tuple[int, ...]  # by atom, as charges
    charges: tuple[int, ...]
    orders: tuple[int, ...]  # by bond

    @classmethod
    def of(cls, kekule: Chem.Mol) -> "Form":
        atoms, bonds = kekule.GetAtoms(), kekule.GetBonds()
        return cls(
            tuple(atom.GetTotalNumHs() for atom in atoms),
            tuple(atom.GetFormalCharge() for atom in atoms),
            tuple(int(bond.GetBondTypeAsDouble()) for bond in bonds),
        )

    def drawn(self, kekule: Chem.Mol) -> Chem.Mol:
        """The sanitized molecule of this form; raises what RDKit raises if there is none."""
        mol, before = Chem.Mol(kekule), Form.of(kekule)
        for number, order in enumerate(self.orders):
            if order != before.orders[number]:
                mol.GetBondWithIdx(number).SetBondType(Chem.BondType.values[order])
        for number, (hydrogens, charge) in enumerate(zip(self.hydrogens, self.charges, strict=True)):
            if (hydrogens, charge) != (before.hydrogens[number], before.charges[number]):
                atom = mol.GetAtomWithIdx(number)
                atom.SetNoImplicit(True)
                atom.SetNumExplicitHs(hydrogens)
                atom.SetFormalCharge(charge)
        Chem.SanitizeMol(mol)
        return mol

    def moved(self, donor: int, acceptor: int, path: tuple[int, ...]) -> "Form":
        """The form with a hydrogen, or else a negative charge, at the other end of a path; a proton needs no path."""
        hydrogens, charges, orders = list(self.hydrogens), list(self.charges), list(self.orders)
        has_hydrogen = self.hydrogens[donor] > 0
        charge = (not has_hydrogen) - (not path)
        hydrogens[donor] -= has_hydrogen
        hydrogens[acceptor] += has_hydrogen
        charges[donor] += charge
        charges[acceptor] -= charge
        for number, bond in enumerate(path):
            orders[bond] += -1 if number % 2 else 1
        return Form(tuple(hydrogens), tuple(charges), tuple(orders))


@dataclass(frozen=True)
class Group:
    """Atoms that share mobile hydrogens, or all atoms between which protons move."""

    kekule: Chem.Mol  # with localized double bonds
    atoms: list[int]
    protons: bool = False  # charges move with the hydrogens

    @cached_property
    def symbols(self) -> list[str]:
        """The elements of all atoms of the molecule."""
        return [atom.GetSymbol() for atom in self.kekule.GetAtoms()]

    @property
    def is_decided(self) -> bool:
        """Whether it is an acid or an amide, which ``with_amides`` draws."""
        symbols = sorted(self.symbols[atom] for atom in self.atoms)
        return symbols in (["O", "O"], ["N", "O"]) and self.at_one_atom(*self.atoms)

    def at_one_atom(self, first: int, second: int) -> bool:
        """Whether two atoms have a neighbour in common."""
        return len(Chem.GetShortestPath(self.kekule, first, second)) == 3

    def neighbours(self, form: Form) -> Iterator[Form]:
        """The forms that differ by the place of one hydrogen."""
        for donor in self.atoms:
            if form.hydrogens[donor]:
                for acceptor, path in (self.to_bases if self.protons else self.paths)(form, donor):
                    yield form.moved(donor, acceptor, path)

    def to_bases(self, form: Form, donor: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Atoms that can take the proton of a donor, each with an empty path."""
        for acceptor in self.atoms:
            pair = form.charges[donor], form.charges[acceptor]
            near = (other.GetFormalCharge() for other in self.kekule.GetAtomWithIdx(acceptor).GetNeighbors())
            if (pair == (0, -1) and max(near, default=0) <= 0) or (pair == (1, 0) and self.symbols[acceptor] == "N"):
                yield acceptor, ()

    def paths(self, form: Form, donor: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Atoms that can take a hydrogen of a donor, each at the end of bonds that are single and double in turn."""
        reached, steps = set[int](), 0  # breadth first: short paths before long ones
        stack: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [(donor, (donor,), ())]
        while stack and steps < MOST_STEPS:
            atom, visited, path = stack.pop(0)
            steps += 1
            for bond in self.kekule.GetAtomWithIdx(atom).GetBonds():
                other, number = bond.GetOtherAtomIdx(atom), bond.GetIdx()
                if other not in visited and form.orders[number] == 1 + len(path) % 2:
                    if len(path) % 2 and other in self.atoms and other not in reached:
                        reached.add(other)
                        yield other, (*path, number)
                    stack.append((other, (*visited, other), (*path, number)))

    def with_amides(self, form: Form) -> Form:
        """The form with the hydrogens and charges of imidic acids at nitrogen."""
        for donor in self.atoms:
            if self.symbols[donor] != "N" and (form.hydrogens[donor] or form.charges[donor] < 0):
                for acceptor, path in self.paths(form, donor):
                    if self.symbols[acceptor] == "N" and self.at_one_atom(donor, acceptor):
                        form = form.moved(donor, acceptor, path)
                        break
        return form

    def forms(self, start: Form) -> list[Form]:
        """All forms, at most ``MOST_FORMS``, beginning with this one."""
        by_state = {(start.hydrogens, start.charges): start}
        for form in (waiting := [start]):
            for other in self.neighbours(form):
                key = (other.hydrogens, other.charges)
                if key not in by_state and len(by_state) < MOST_FORMS:
                    by_state[key] = other
                    waiting.append(other)
        return waiting

    def best(self, start: Form) -> tuple[Form, bool]:
        """The form with the lowest cost, and whether another molecule has nearly the same or may have a lower one."""
        drawn, forms = [], self.forms(start)
        for form in forms:
            with contextlib.suppress(ValueError):  # of RDKit, for an impossible valence
                mol = form.drawn(self.kekule)
                drawn.append((cost(mol), form, mol))
        lowest = min((value for value, _, _ in drawn), default=0.0)
        near = {Chem.MolToSmiles(mol) for value, _, mol in drawn if value <= lowest + CLOSE}
        form = next((form for value, form, _ in drawn if value == lowest), start)
        return form, len(near) > 1 or len(forms) == MOST_FORMS


def cost(mol: Chem.Mol) -> float:
    """The sum of the ``COSTS``: the lower, the more usual is the form."""
    return sum(value * len(mol.GetSubstructMatches(pattern, maxMatches=10_000)) for pattern, value in PATTERNS)


def mobile_groups(inchi: str, mol: Chem.Mol) -> list[list[int]]:
    """The atoms of each group with mobile hydrogens, counted from 0, as RDKit numbers them."""
    layer = next((layer[1:] for layer in inchi.split("/")[2:] if layer.startswith("h")), "")
    repeated = (REPEATED.findall(part)[0] for part in layer.split(";"))
    parts = [text for times, text in repeated for _ in range(int(times or 1))]
    return [
        [min(places) + int(number) - 1 for number in atoms.split(",")]
        for places, part in zip(Chem.GetMolFrags(mol), parts, strict=False)
        for atoms in GROUP.findall(part)
    ]


def molecule_of_inchi(text: str) -> tuple[Chem.Mol, bool] | None:
    """The molecule of an InChI, and whether the places of its hydrogens are a guess; None if RDKit cannot read it."""
    mol = Chem.MolFromInchi(text)
    if mol is None:
        return None
    mobile, acids = mobile_groups(text, mol), [match[0] for match in mol.GetSubstructMatches(HYDROGEN_HALIDE)]
    protons = "/p" in text or (acids and any(atom.GetFormalCharge() < 0 for atom in mol.GetAtoms()))
    if "/f" in text or not (mobile or protons):  # with fixed hydrogens, or with neither mobile ones nor protons
        return mol, False
    kekule = Chem.Mol(mol)
    Chem.Kekulize(kekule, clearAromaticFlags=True)
    groups = [group for atoms in mobile if not (group := Group(kekule, atoms)).is_decided]
    hetero = [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetSymbol() in ("N", "O", "S", "Se")]
    if protons:
        groups.append(Group(kekule, [*hetero, *acids], protons=True))
    guess, start = len(groups) * mol.GetNumAtoms() > MOST_WORK, Form.of(kekule)
    form = Group(kekule, hetero).with_amides(start)
    for _ in range(0 if guess or not groups else ROUNDS):
        before, guess = form, False
        for group in groups:
            form, unsure = group.best(form)
            guess |= unsure
        if form == before:
            break
    if form == start:
        return mol, guess
    drawn = form.drawn(kekule)
    Chem.AssignStereochemistry(drawn, cleanIt=True, force=True)
    return (drawn, guess) if Chem.MolToInchi(drawn) == Chem.MolToInchi(mol) else (mol, True)
