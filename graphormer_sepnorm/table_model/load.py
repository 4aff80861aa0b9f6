"""Models by their names: a table model from its run folder, networks from everything else.

Axis letters: M molecules.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np
from rdkit import Chem

from graphormer_sepnorm.chem.features import Sample
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.columns import PredictionColumns
from graphormer_sepnorm.inference.predict import PredictingModel, compute_chunks, load_predictor
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.system.device import Compute, choose, computing
from graphormer_sepnorm.system.workers import in_chunks
from graphormer_sepnorm.table_model.earlier import load_earlier
from graphormer_sepnorm.tables.formats.table import find_column, with_free_names
from graphormer_sepnorm.tables.rows import condition_text, samples_of
from graphormer_sepnorm.tables.writers import Cells

if TYPE_CHECKING:
    from pandas import DataFrame

    from graphormer_sepnorm.inference.explain import Explanation


def load_predicting_model(names: Sequence[str]) -> PredictingModel:
    """Loads the table model of a run folder, or networks as ``load_predictor``, onto the device of ``device.current``.

    A single run folder that an earlier version wrote comes with what lies beside its networks, as ``load_earlier``.

    Raises:
        InputError: as ``load_predictor``, ``load_earlier`` and ``TableModel.load``, or a table model that is to be
            averaged with others.
    """
    places = [resolve_model(name) for name in names]
    tables = [place for place in places if RunFolder(place).stack.exists()]
    if tables and len(places) > 1:
        raise InputError(f"{tables[0]} is a table model, which predicts on its own: name it without other models")
    if tables:
        from graphormer_sepnorm.table_model.model import TableModel  # SciPy and training, which networks do not need

        return TableModel.load(tables[0])
    return load_earlier(places[0]) if len(places) == 1 else load_predictor(list(names))


def load_model(
    *names: str | PathLike, device: str = "auto", precision: Literal["auto", "float32", "bfloat16"] = "auto"
) -> "LoadedModel":
    """Loads what the command ``predict`` predicts with.

    Args:
        names: a run folder, weights file or the name of shipped weights; several networks are averaged.
        device, precision: as the options of the command.

    Raises:
        InputError: as ``load_predicting_model``, or no name; a device that is not there.
    """
    if not names:
        raise InputError("name a model: a run folder, a weights file or shipped weights")
    compute = choose(device, precision)
    with computing(compute):
        return LoadedModel(load_predicting_model([str(name) for name in names]), compute)


@dataclass(frozen=True)
class LoadedModel:
    """A model that predicts as the command ``predict`` does.

    Attributes:
        model: with its networks on the device.
        compute: where and how precisely to compute.
    """

    model: PredictingModel
    compute: Compute

    def predict(
        self,
        molecules: "DataFrame | Iterable[str | Chem.Mol | None]",
        interval: float | None = None,
        domain: bool = False,
        alerts: bool = False,
        properties: bool = False,
        smiles_column: str | None = None,
    ) -> "DataFrame":
        """Predicts a table of M rows, with the columns and values of the command.

        Args:
            molecules: SMILES or molecules of RDKit, or a DataFrame, whose columns are kept.
            interval: confidence of the intervals in ``NAME_low`` and ``NAME_high``; None: none.
            domain: whether rows are compared with the training molecules, in the columns of ``domain_columns``.
            alerts, properties: whether the structural alerts and the ``PROPERTIES`` of molecules are named.
            smiles_column: of a DataFrame; by default the one named smiles.

        Returns:
            per target a number, NaN where the molecule cannot be read, which ``error`` explains.

        Raises:
            InputError: one text in place of a list, no such column, or what the model cannot give.
        """
        import pandas as pd  # its import takes a while

        table = as_table(molecules).copy(deep=False)
        names = [str(name) for name in table.columns]
        place = find_column(names, smiles_column, "the table")
        smiles = [as_smiles(value) for value in table.iloc[:, place]]
        columns = PredictionColumns(self.model, interval, domain, alerts, properties)
        with computing(self.compute):
            samples = with_conditions(smiles, table, self.model.condition_columns)
            parts = [part for _, part in compute_chunks(columns.reader, list(in_chunks(samples)) or [[]], list)]
        cells = zip(*(columns.cells(part, part.errors) for part in parts), strict=True)
        joined = (np.concatenate([np.asarray(part, part_type(part)) for part in column]) for column in cells)
        added = with_free_names((column.name for column in columns.all), names)
        found = pd.DataFrame(dict(zip(added, joined, strict=True)), index=table.index)
        table.isetitem(place, smiles)
        return pd.concat([table, found], axis=1)

    def explain(self, molecules: Iterable[str | Chem.Mol], target: str | None = None) -> "list[Explanation]":
        """Explains which atoms and fragments the predictions rest on, as the command ``explain`` does.

        Args:
            molecules: SMILES or molecules of RDKit.
            target: name of the target; None: the first one.

        Raises:
            InputError: a molecule that cannot be read, or there is no such target.
        """
        from graphormer_sepnorm.table_model.explain import explain_rows  # its import takes a while

        with computing(self.compute), self.compute.arithmetic():
            found = explain_rows(self.model, [as_smiles(molecule) or "" for molecule in molecules], target=target)
        for row, each in found.items():
            if isinstance(each, InputError):
                raise InputError(f"row {row} (counted from 0): {each}")
        return [each for each in found.values() if not isinstance(each, InputError)]


def part_type(part: Cells) -> type:
    return float if isinstance(part, np.ndarray) else object


def as_table(molecules: "DataFrame | Iterable[str | Chem.Mol | None]") -> "DataFrame":
    """Molecules as a table; raises InputError for a single text."""
    import pandas as pd

    if isinstance(molecules, str):
        raise InputError("give a list of SMILES, not one string")
    return molecules if isinstance(molecules, pd.DataFrame) else pd.DataFrame({"smiles": list(molecules)}, dtype=object)


def with_conditions(smiles: list[str | None], table: "DataFrame", names: tuple[str, ...]) -> list:
    """SMILES, with the cells of the columns of conditions that a model reads; raises InputError if one is missing."""
    if not names:
        return smiles
    samples_of([str(name) for name in table.columns], names, "the table")
    rows = zip(*(map(str, table[name]) for name in names), strict=True)
    return [Sample(text, tuple(map(condition_text, row))) for text, row in zip(smiles, rows, strict=True)]


def as_smiles(value: object) -> str | None:
    """The SMILES of a molecule or of a cell; None for what is neither."""
    if isinstance(value, Chem.Mol):
        return Chem.MolToSmiles(value)
    return value if isinstance(value, str) else None
