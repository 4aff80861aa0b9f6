"""What the worker computes: tables, predictions, and pictures. Runs in a process of its own."""

from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
from rdkit import Chem
from rdkit.Chem.Draw import rdMolDraw2D

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.chem.smiles import one_molecule, read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.columns import PredictionColumns
from graphormer_sepnorm.inference.pictures import draw
from graphormer_sepnorm.inference.predict import PredictingModel, Predictions
from graphormer_sepnorm.inference.trust import Trust
from graphormer_sepnorm.interfaces.web.schemas import (
    Atom,
    AtomContributions,
    ColumnFacts,
    Fragment,
    ModelFacts,
    MoleculePrediction,
    TableRow,
    TableRows,
)
from graphormer_sepnorm.runs.folder import RunFolder, member_paths
from graphormer_sepnorm.runs.info import words
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.system.device import Compute, choose, computing, current
from graphormer_sepnorm.system.workers import one_thread
from graphormer_sepnorm.table_model.explain import explain_rows
from graphormer_sepnorm.table_model.info import describe_any
from graphormer_sepnorm.table_model.load import load_predicting_model
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.writers import Cells
from graphormer_sepnorm.tasks import TASKS

WIDTH, HEIGHT = 200, 140
MOST_ATOMS_DRAWN = 200
LOOK = {"clearBackground": False, "fixedBondLength": 26}
SHOWN_OF_MODEL = (
    "architecture",
    "weights",
    "parameters",
    "training_data",
    "metric",
    "validation",
    "test",
    "vocabulary",
    "licence",
)


@dataclass(frozen=True)
class PredictionService:
    """The models of a page.

    Attributes:
        predictor: all of them.
        confidence: of the intervals.
        compute: where and how precisely to compute.
        name: what the page calls them.
        about: facts for people.
    """

    predictor: PredictingModel
    confidence: float
    compute: Compute
    name: str
    about: dict[str, str]

    @property
    def trust(self) -> Trust | None:
        """What is known of the predictions' errors and of the training molecules."""
        return self.predictor.trust

    @cached_property
    def columns(self) -> PredictionColumns:
        """What is said of each molecule: all that is known."""
        return PredictionColumns(self.predictor, self.known_confidence, self.trust is not None, True, True)

    @property
    def known_confidence(self) -> float | None:
        """The confidence of intervals or of sets of classes; None where the models have none."""
        known = self.trust and (self.trust.intervals or self.trust.class_sets)
        return self.confidence if known else None

    def facts(self) -> ModelFacts:
        return ModelFacts(
            model=self.name,
            targets=list(self.predictor.targets),
            is_probability=TASKS[self.predictor.kind].predicts_probabilities,
            models=len(self.predictor.models),
            confidence=self.known_confidence,
            knows_domain=self.trust is not None,
            columns=[ColumnFacts(name=column.name, place=list(column.place)) for column in self.columns.all],
            about=self.about,
        )

    def read(self, path: Path, shown: str, most_rows: int) -> TableRows:
        """The table in a file.

        Args:
            path: as ``open_table``.
            shown: what messages call it.
            most_rows: that a table may have.

        Raises:
            InputError: an unusable table, one without rows, or with more than ``most_rows``.
        """
        try:
            with open_table(path) as table:
                rows = [TableRow(row.fields, row.smiles, row.error) for row in islice(table.rows, most_rows + 1)]
                columns = table.columns
        except InputError as error:
            raise InputError(str(error).replace(str(path), shown)) from None
        if len(rows) > most_rows:
            raise InputError(
                f"{shown} has more than {most_rows:,} molecules, which is the most for this page: "
                "use graphormer-sepnorm predict for it, or a part of the table"
            )
        if not rows:
            raise InputError(f"{shown} has no molecules")
        return TableRows(columns, rows)

    def predict(self, smiles: list[str]) -> list[MoleculePrediction]:
        """An answer for each SMILES; one that cannot be read costs only its own row."""
        with computing(self.compute), one_thread():
            found = self.columns.reader.compute(read_molecules(self.predictor.featurizer, smiles))
        return as_answers(self.columns, found)

    def structure(self, smiles: str) -> str:
        """A small picture as SVG; raises InputError for what cannot be read or drawn."""
        mol = read_small(smiles)
        with one_molecule(smiles):
            canvas = rdMolDraw2D.MolDraw2DSVG(WIDTH, HEIGHT)
            options = canvas.drawOptions()
            for name, value in LOOK.items():
                setattr(options, name, value)
            rdMolDraw2D.PrepareAndDrawMolecule(canvas, mol)
            canvas.FinishDrawing()
            return canvas.GetDrawingText()

    def atoms(self, smiles: str, target: str) -> AtomContributions:
        """Contributions to what is predicted; raises InputError as ``explain_rows``."""
        read_small(smiles)
        with computing(self.compute), current().arithmetic():
            explanation = explain_rows(self.predictor, [smiles], target=target)[0]
        if isinstance(explanation, InputError):
            raise explanation
        mol = read_small(explanation.smiles)
        return AtomContributions(
            caption=explanation.caption,
            meaning=explanation.meaning,
            baseline=explanation.baseline,
            start=explanation.start,
            atoms=[
                Atom(symbol=atom.GetSymbol(), contribution=value)
                for atom, value in zip(mol.GetAtoms(), explanation.contributions.tolist(), strict=True)
            ],
            fragments=[
                Fragment(smiles=each.smiles, atoms=list(each.atoms), contribution=each.contribution)
                for each in explanation.fragments
            ],
            picture=draw([explanation], ".svg").decode(),
        )


def as_answers(columns: PredictionColumns, found: Predictions) -> list[MoleculePrediction]:
    """The cells of each molecule at their places."""
    cells = [as_values(each) for each in columns.cells(found, found.errors)]
    answers = []
    for error, *row in zip(found.errors, *cells, strict=True):
        answer: dict = {}
        for column, value in zip(columns.all, row, strict=True):
            *outer, last = column.place
            reduce(lambda inner, name: inner.setdefault(name, {}), outer, answer)[last] = value
        answers.append(MoleculePrediction(error=error) if error else MoleculePrediction.model_validate(answer))
    return answers


def as_values(cells: Cells) -> list:
    """Cells as JSON has them: numbers, None for NaN, or texts."""
    values = cells.tolist() if isinstance(cells, np.ndarray) else list(cells)
    return [None if value != value else value for value in values]


def read_small(smiles: str) -> Chem.Mol:
    """A molecule that can be drawn; raises InputError for another."""
    mol = read_smiles(smiles)
    if mol.GetNumAtoms() > MOST_ATOMS_DRAWN:
        raise InputError(f"the molecule has {mol.GetNumAtoms():,} atoms; at most {MOST_ATOMS_DRAWN} are drawn")
    return mol


def load_service(
    names: list[str], confidence: float, device: str, precision: Literal["auto", "float32", "bfloat16"]
) -> PredictionService:
    """Loads the models.

    Args:
        names: as ``load_predicting_model``.
        confidence: of the intervals, where a model has them.
        device, precision: as ``choose``.

    Raises:
        InputError: as ``load_predicting_model`` and ``choose``, or a confidence that cannot be had.
    """
    compute = choose(device, precision)
    place = resolve_model(names[0])
    with computing(compute):
        predictor = load_predicting_model(names)
    described = describe_any(place if RunFolder(place).stack.exists() else member_paths(place)[0])
    about = {
        name.replace("_", " "): words(name, described[name])
        for name in SHOWN_OF_MODEL
        if described.get(name) is not None
    }
    name = " + ".join(Path(name).name.removesuffix(".safetensors") for name in names)
    models = PredictionService(predictor, confidence, compute, name, about)
    models.predict(["C"])  # what is compiled at the first molecule is not to count against a user's time
    return models
