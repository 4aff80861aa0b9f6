"""Loading of models by name: a table model from its run folder, networks from everything else.

Axis letters: M molecules.
"""

import shlex
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np
from rdkit import Chem

from graphormer_sepnorm.chem.features import Sample
from graphormer_sepnorm.chem.smiles import one_column
from graphormer_sepnorm.config import TEACHER
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.output.columns import Judging, PredictionColumns, check_confidence, shown_decimals
from graphormer_sepnorm.predict.predictors import (
    PredictingModel,
    compute_chunks,
    joined,
    load_predictor,
    molecules_at_once,
)
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.system.device import Compute, choose, computing
from graphormer_sepnorm.system.workers import Smiles, in_chunks
from graphormer_sepnorm.tables.formats.table import find_column, with_free_names
from graphormer_sepnorm.tables.rows import AskedConditions, condition_argument, condition_text
from graphormer_sepnorm.tables.writers import Cells

if TYPE_CHECKING:
    from pandas import DataFrame

    from graphormer_sepnorm.explain.explanations import Explanation

NAME_A_COLUMN = "name one with smiles_column='NAME'"


def load_predicting_model(names: Sequence[str]) -> PredictingModel:
    """Loads the table model of a run folder, or networks as ``load_predictor``, onto the device of ``device.current``.

    Raises:
        InputError: as ``load_predictor`` and ``TableModel.load``, a table model is named together with other models,
            or the model was pretrained to imitate a teacher.
    """
    places = [resolve_model(name) for name in names]
    tables = [name for name, place in zip(names, places, strict=True) if RunFolder(place).stack.exists()]
    if tables and len(places) > 1:
        raise InputError(f"{tables[0]} is a table model, which cannot be averaged: name it without other models")
    if tables:
        from graphormer_sepnorm.table_model.model import TableModel  # slow to import, not needed by networks

        return TableModel.load(places[0])
    predictor = load_predictor(list(names))
    if all(target.startswith(TEACHER) for target in predictor.targets):
        name = shlex.quote(str(names[0]))
        raise InputError(
            f"{names[0]} imitates the embeddings of another model and predicts no property: fine-tune it with "
            f"train FILE --from {name}, or write its embeddings with embed {name} FILE -o OUT.csv"
        )
    return predictor


def load_model(
    *names: str | PathLike, device: str = "auto", precision: Literal["auto", "float32", "bfloat16"] = "auto"
) -> "LoadedModel":
    """Loads a model as the command ``predict`` does.

    Args:
        names: a run folder, a weights file or the name of shipped weights; several networks, as in
            ``load_model("zinc", "zinc-subset")``, are averaged.
        device, precision: as in the command's options.

    Raises:
        InputError: no name is given, a model is not found or damaged, a table model is named with others, the model
            only imitates another one, or the device is not available.
    """
    if not names:
        raise InputError("name a model: a run folder, a weights file or shipped weights")
    for name in names:
        if not isinstance(name, str | PathLike):
            raise InputError(f"{name!r} is not the name of a model; name several as in load_model('a', 'b')")
    compute = choose(device, precision)
    with computing(compute):
        model = load_predicting_model([str(name) for name in names])
    for words in unfinished(names):
        warnings.warn(words, stacklevel=2)
    return LoadedModel(model, compute)


def unfinished(names: Iterable[str | PathLike]) -> list[str]:
    """A sentence on each table model among the models with these names whose training is not finished."""
    runs = [run for run in map(RunFolder, map(resolve_model, names)) if run.stack.exists()]
    if not runs:
        return []
    from graphormer_sepnorm.table_model.info import unfinished_words  # slow to import, not needed by networks

    return list(filter(None, map(unfinished_words, runs)))


@dataclass(frozen=True, repr=False)
class LoadedModel:
    """A model that predicts as the command ``predict`` does.

    Attributes:
        model: with its networks on the device.
        compute: where and how precisely to compute.
    """

    model: PredictingModel
    compute: Compute

    def __repr__(self) -> str:
        return f"LoadedModel({self.model.kind} of {', '.join(self.model.targets)})"

    def predict(
        self,
        molecules: "DataFrame | Iterable[str | Chem.Mol | None]",
        interval: float | None = None,
        domain: bool = False,
        alerts: bool = False,
        properties: bool = False,
        smiles_column: str | None = None,
        conditions: Mapping[str, object] | None = None,
        profile: Judging | None = None,
    ) -> "DataFrame":
        """Predicts M rows, with the same columns and values as the command.

        Args:
            molecules: SMILES, RDKit molecules, or a table of pandas, polars or pyarrow, whose columns are kept. A
                DataFrame or a Series of pandas keeps its index.
            interval: confidence level of the intervals in ``NAME_low`` and ``NAME_high``; None: no intervals.
            domain: add the nearest training molecule with its id, labels and similarity, as far as known, and a warning
                if the molecule is unlike all of them.
            alerts: add the names of structural alerts.
            properties: add basic properties such as ``MolWt``, ``MolLogP`` and ``TPSA``.
            smiles_column: SMILES column of a DataFrame; default: the column with one of the usual names, such as
                ``smiles``, ``SMILES`` or ``structure``.
            conditions: conditions of the measurement that are the same for all rows; a DataFrame has the others as
                columns.
            profile: as ``Profile.read``: add a desirability and the probability that all its criteria hold.

        Returns:
            a row per molecule: the columns of a DataFrame, or else ``smiles``; a column per target, NaN where the
            molecule cannot be read; and others, such as ``NAME_std``. The column ``error`` gives the reason.

        Raises:
            InputError: a single text in place of a list, a missing column, or an option or a condition that the model
                does not support.
        """
        import pandas as pd  # its import takes a while

        table = as_table(molecules).copy(deep=False)
        names = [str(name) for name in table.columns]
        place = find_column(names, smiles_column, "the table", advice=NAME_A_COLUMN)
        smiles = [as_smiles(value) for value in table.iloc[:, place]]
        model = self.model.under(conditions or {})
        columns = columns_asked_for(model, interval, domain, alerts, properties, profile)
        with computing(self.compute):
            samples = with_conditions(smiles, table, model.asked_conditions)
            chunks = list(in_chunks(samples, molecules_at_once(self.model.device))) or [[]]
            whole = joined([part for _, part in compute_chunks(columns.reader, chunks, list)])
        cells: list[np.ndarray] = [np.asarray(each, part_type(each)) for each in columns.cells(whole, whole.errors)]
        added = with_free_names((column.name for column in columns.all), names)
        found = pd.DataFrame(dict(zip(added, cells, strict=True)), index=table.index)
        table.isetitem(place, smiles)
        return pd.concat([table, found], axis=1)

    def explain(
        self,
        molecules: "DataFrame | Iterable[str | Chem.Mol]",
        target: str | None = None,
        smiles_column: str | None = None,
        conditions: Mapping[str, object] | None = None,
    ) -> "list[Explanation]":
        """Explains which atoms and fragments the predictions rest on, as the command ``explain`` does.

        Args:
            molecules, smiles_column, conditions: as ``predict``.
            target: name of the target; None: the first one.

        Returns:
            an explanation per molecule; ``explain.pictures.draw`` draws them.

        Raises:
            InputError: as ``predict``, a molecule cannot be read, or there is no such target.
        """
        from graphormer_sepnorm.table_model.explain import explain_rows  # its import takes a while

        table = as_table(molecules)
        place = find_column([str(name) for name in table.columns], smiles_column, "the table", advice=NAME_A_COLUMN)
        smiles = [as_smiles(value) or "" for value in table.iloc[:, place]]
        model = self.model.under(conditions or {})
        samples = with_conditions(smiles, table, model.asked_conditions)
        with computing(self.compute), self.compute.arithmetic():
            found = explain_rows(model, samples, target=target, decimals=shown_decimals(model))
        for row, each in found.items():
            if isinstance(each, InputError):
                raise InputError(f"row {row} (counted from 0): {each}")
        return [each for each in found.values() if not isinstance(each, InputError)]


def columns_asked_for(
    model: PredictingModel,
    interval: float | None,
    domain: bool,
    alerts: bool,
    properties: bool,
    profile: Judging | None = None,
) -> PredictionColumns:
    """The columns of predictions; raises InputError, with names of parameters, as ``PredictionColumns``."""
    check_confidence("interval", interval)
    for name, flag in (("domain", domain), ("alerts", alerts), ("properties", properties)):
        if not isinstance(flag, bool | np.bool_):
            raise InputError(f"{name}: choose True or False, not {flag!r}")
    return PredictionColumns(model, interval, domain, alerts, properties, profile=profile, is_whole=True)


def part_type(part: Cells) -> type:
    return float if isinstance(part, np.ndarray) else object


def as_table(molecules: "DataFrame | Iterable[str | Chem.Mol | None]") -> "DataFrame":
    """Molecules as a table, with their index if they have one; raises InputError for a single molecule."""
    import pandas as pd

    if isinstance(molecules, str):
        raise InputError("give a list of SMILES, not one string")
    if isinstance(molecules, Chem.Mol):
        raise InputError("give a list of molecules, not one molecule")
    if isinstance(molecules, pd.DataFrame):
        return molecules
    names = getattr(molecules, "column_names", getattr(molecules, "columns", None))
    try:
        if names is not None:  # a table of polars, pyarrow or another library
            return pd.DataFrame({str(name): np.asarray(molecules[name]) for name in names})  # type: ignore[index]
    except (TypeError, KeyError):
        pass
    if isinstance(molecules, Mapping) or not isinstance(molecules, Iterable) or hasattr(molecules, "columns"):
        raise InputError(f"pass a DataFrame, a Series or a list of SMILES, not {type(molecules).__name__}")
    index = molecules.index if isinstance(molecules, pd.Series) else None
    return pd.DataFrame({"smiles": list(one_column(molecules))}, index=index, dtype=object)


def with_conditions(smiles: Sequence[str | None], table: "DataFrame", asked: AskedConditions) -> Smiles:
    """SMILES with the conditions that a model asks for; raises InputError as ``AskedConditions.places``."""
    places = asked.places([str(name) for name in table.columns], "the input", condition_argument)
    if not places:
        return smiles
    rows = zip(*(map(str, table.iloc[:, place]) for place in places), strict=True)
    return [Sample(text, tuple(map(condition_text, row))) for text, row in zip(smiles, rows, strict=True)]


def as_smiles(value: object) -> str | None:
    """The SMILES of a molecule, or the text of a cell; None for a missing one and anything else."""
    if isinstance(value, Chem.Mol):
        return Chem.MolToSmiles(value)
    if isinstance(value, Real) and value == value:  # not NaN
        return str(value)
    return value if isinstance(value, str) else None
