"""Loading of models by name: a table model from its run folder, networks from everything else.

Axis letters: M molecules."""

import shlex
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from rdkit import Chem

from graphormer_sepnorm.chem.features import Sample
from graphormer_sepnorm.chem.smiles import one_column
from graphormer_sepnorm.config import TEACHER, Config
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.output.column import shown_decimals
from graphormer_sepnorm.output.columns import Judging, PredictionColumns
from graphormer_sepnorm.predict.classes import check_confidence
from graphormer_sepnorm.predict.domain import missing_conditions
from graphormer_sepnorm.predict.forward import share_trunks
from graphormer_sepnorm.predict.predictors import PredictingModel, Predictor, compute_all, face_of, load_networks
from graphormer_sepnorm.predict.side_by_side import Part, SideBySide, have_same_domain, parts_of
from graphormer_sepnorm.predict.training_rows import read_drugs
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import counted
from graphormer_sepnorm.runs.zoo import card_endpoints, model_digest, panel_parts, read_card, resolve_model
from graphormer_sepnorm.system.device import Compute, choose, computing
from graphormer_sepnorm.system.workers import Smiles
from graphormer_sepnorm.tables.formats.table import NoColumn, find_column, with_free_names
from graphormer_sepnorm.tables.rows import AskedConditions, condition_argument, condition_text

if TYPE_CHECKING:
    from pandas import DataFrame

    from graphormer_sepnorm.explain.explanations import Explanation

NAME_A_COLUMN = "name one with smiles_column='NAME'"


def load_predicting_model(names: Sequence[str]) -> PredictingModel:
    """Loads models onto the device of ``device.current``; several, or a panel, are ``SideBySide``."""
    places = [resolve_model(name) for name in names]
    parts: list[Part] = []
    networks: dict[Hashable, list[tuple[Network, Config]]] = {}
    for name, title, place in zip(names, names_of(names), places, strict=True):
        panel, is_table = panel_parts(place), RunFolder(place).stack.exists()
        if (panel or is_table) and places.count(place) > 1:
            raise InputError(f"{name} is named twice")
        if panel:
            parts += load_panel(title, place, panel)
        elif is_table:
            from graphormer_sepnorm.table_model.model import TableModel  # slow to import, not needed by networks

            parts.append(Part(title, TableModel.load(place), endpoints=card_endpoints(place)))
        else:
            (network,) = load_networks([place])
            if all(target.startswith(TEACHER) for target in network[1].task.targets):
                quoted = shlex.quote(str(name))
                advice = (
                    f"fine-tune it with train FILE --from {quoted}, or write them with embed {quoted} FILE -o OUT.csv"
                )
                raise InputError(f"{name} imitates the embeddings of another model and predicts no property: {advice}")
            alike = networks.setdefault(face_of(network[1]), [])
            alike.append(network)
            if len(alike) == 1:
                parts.append(Part(title, Predictor(alike)))
    if len(parts) == 1 and not parts[0].order:
        return parts[0].model
    share_trunks([network for part in parts for network, _ in part.model.models])
    return SideBySide(tuple(parts))


def names_of(names: Sequence[str]) -> list[str]:
    """The names in columns of models with these names or paths; equal ones end in their numbers."""
    short = [Path(name).name.removesuffix(".safetensors") or "model" for name in names]
    return [f"{name}{number}" if short.count(name) > 1 else name for number, name in enumerate(short, 1)]


def digests_of(names: Sequence[str]) -> dict[str, str]:
    """The digests of models by their names in columns, as ``model_digest``."""
    return dict(zip(names_of(names), map(model_digest, map(resolve_model, names)), strict=True))


def load_panel(name: str, place: Path, folders: Sequence[Path]) -> list[Part]:
    from graphormer_sepnorm.table_model.model import TableModel

    card, facts = read_card(place), card_endpoints(place)
    models = [TableModel.load(folder) for folder in folders]
    targets = [target for model in models for target in model.targets]
    if card is None or sorted(targets) != sorted(facts):
        raise InputError(f"{place} is no panel: its card does not name each target of its models once")
    if not all(have_same_domain(models[0], model) for model in models):
        raise InputError(f"{place} is no panel: its models did not learn from the same molecules")
    drugs = read_drugs(place, targets)
    for model in models:
        model.assay_limits = {target: limit for target, limit in card.limits.items() if target in model.targets}
        model.descriptions = {target: words for target, words in card.descriptions.items() if target in model.targets}
    return [Part(name, model, tuple(facts), facts, drugs) for model in models]


def load_model(
    *names: str | PathLike, device: str = "auto", precision: Literal["auto", "float32", "bfloat16"] = "auto"
) -> "LoadedModel":
    """Loads a model as the command ``predict`` does.

    Args:
        names: a run folder, a weights file or the name of shipped weights. Networks of the same targets, as in
            ``load_model("zinc", "zinc-subset")``, are averaged; other models stand side by side.
        device, precision: as in the command's options.

    Raises:
        InputError: no name is given, or one twice, a model is not found or damaged or only imitates another one, or the
            device is not available.
    """
    if not names:
        raise InputError("name a model: a run folder, a weights file or shipped weights")
    if strange := [name for name in names if not isinstance(name, str | PathLike)]:
        raise InputError(f"{strange[0]!r} is not the name of a model; name several as in load_model('a', 'b')")
    with computing(compute := choose(device, precision)):
        model = load_predicting_model(texts := list(map(str, names)))
    for words in unfinished(names):
        warnings.warn(words, stacklevel=2)
    return LoadedModel(model, compute, ", ".join(digests_of(texts).values()))


def load_models(
    names: Sequence[str | PathLike], device: str = "auto", precision: Literal["auto", "float32", "bfloat16"] = "auto"
) -> "LoadedModel":
    """Loads several models to predict with all of them at once, as ``load_model`` with their names does.

    A molecule is read once. The columns are those of each model; where two models have a column of the same name, it
    begins with the name of the model.

    Raises:
        InputError: as ``load_model``.
    """
    if isinstance(names, str | PathLike):
        raise InputError(f"give a list of models, as in load_models([{str(names)!r}])")
    return load_model(*names, device=device, precision=precision)


def unfinished(names: Iterable[str | PathLike]) -> list[str]:
    places = [place for named in map(resolve_model, names) for place in panel_parts(named) or [named]]
    if not (runs := [run for run in map(RunFolder, places) if run.stack.exists()]):
        return []
    from graphormer_sepnorm.table_model.evaluate import unfinished_words  # slow to import, not needed by networks

    return list(filter(None, map(unfinished_words, runs)))


@dataclass(frozen=True, repr=False)
class LoadedModel:
    """A model that predicts as the command ``predict`` does.

    Attributes:
        model: with its networks on the device.
        compute: where and how precisely to compute.
        digest: 12 digits that equal models share, as the command ``info`` shows them; of several models, of each.
    """

    model: PredictingModel
    compute: Compute
    digest: str = ""

    def __repr__(self) -> str:
        kinds = " and ".join(dict.fromkeys(model.kind for model in parts_of(self.model)))
        return f"LoadedModel({kinds} of {', '.join(self.model.targets)}; {self.digest})"

    def predict(
        self,
        molecules: "DataFrame | Iterable[str | Chem.Mol | None]",
        interval: float | None = None,
        domain: bool = False,
        alerts: bool = False,
        properties: bool = False,
        smiles_column: str | None = None,
        conditions: Mapping[str, object] | None = None,
        endpoints: Sequence[str] = (),
        profile: Judging | None = None,
    ) -> "DataFrame":
        """Predicts M rows, with the same columns and values as the command.

        Args:
            molecules: SMILES, RDKit molecules, or a table of pandas, polars or pyarrow, whose columns are kept. A
                DataFrame or a Series of pandas keeps its index.
            interval: confidence level of the intervals in ``NAME_low`` and ``NAME_high``; None: no intervals.
            domain: add the nearest training molecule with its id, labels and similarity, as far as known, and a warning
                if the molecule is outside their domain.
            alerts: add the names of structural alerts.
            properties: add basic properties such as ``MolWt``, ``MolLogP`` and ``TPSA``.
            smiles_column: SMILES column of a DataFrame; default: the column with one of the usual names, such as
                ``smiles``, ``SMILES`` or ``structure``, otherwise the one with RDKit molecules.
            conditions: conditions of the measurement that are the same for all rows; a DataFrame has the others as
                columns.
            endpoints: the targets to return, by name, group or patterns such as ``"CYP3A4*"``; empty: all.
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
        place, smiles = molecule_column(table, smiles_column)
        model = self.model.under(conditions or {})
        if isinstance(endpoints, str):
            raise InputError(f"endpoints: give a list, such as [{endpoints!r}]")
        if isinstance(profile, str | Path):
            raise InputError(f"profile: give Profile.read({str(profile)!r})")
        if interval is not None:
            check_confidence(interval, "interval")
        for name, flag in {"domain": domain, "alerts": alerts, "properties": properties}.items():
            if not isinstance(flag, bool | np.bool_):
                raise InputError(f"{name}: choose True or False, not {flag!r}")
        answers = Answers(interval, domain, alerts, properties, tuple(endpoints))
        columns = PredictionColumns(model, answers, profile=profile, is_whole=True)
        with computing(self.compute):
            whole = compute_all(columns.reader, samples_under(smiles, table, model.asked_conditions))
        for sentence, rows in missing_conditions(whole.warnings, whole.errors).items():
            warnings.warn(f"{counted(rows, 'row')}: {sentence}", stacklevel=2)
        values = columns.cells(whole, whole.errors)
        words, index = pd.Series([""]).dtype, table.index
        cells = [pd.Series(each, index, float if isinstance(each, np.ndarray) else words) for each in values]
        added = with_free_names((column.name for column in columns.all), list(map(str, table.columns)))
        table.isetitem(place, pd.Series(smiles, index, words).array)
        return pd.concat([table, pd.DataFrame(dict(zip(added, cells, strict=True)), index=index)], axis=1)

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
        smiles = [text or "" for text in molecule_column(table, smiles_column)[1]]
        model = self.model.under(conditions or {})
        samples = samples_under(smiles, table, model.asked_conditions)
        with computing(self.compute), self.compute.arithmetic():
            explanations = explain_rows(model, samples, target=target, decimals=shown_decimals(model))
        for row, each in explanations.items():
            if isinstance(each, InputError):
                raise InputError(f"row {row} (counted from 0): {each}")
        return [each for each in explanations.values() if not isinstance(each, InputError)]


def as_table(molecules: "DataFrame | Iterable[str | Chem.Mol | None]") -> "DataFrame":
    """Molecules as a table, with their index if they have one; raises InputError for a single molecule."""
    import pandas as pd

    if isinstance(molecules, str | bytes):
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
    if isinstance(molecules, (Mapping, Set)) or not isinstance(molecules, Iterable) or hasattr(molecules, "columns"):
        raise InputError(f"pass a DataFrame, a Series or a list of SMILES, not {type(molecules).__name__}")
    index = molecules.index if isinstance(molecules, pd.Series) else None
    return pd.DataFrame({"smiles": list(one_column(molecules))}, index=index, dtype=object)


def molecule_column(table: "DataFrame", name: str | None) -> tuple[int, list[str | None]]:
    """The place of a table's column of molecules, if none is named as one that of RDKit molecules, and its SMILES."""
    try:
        place = find_column([str(name) for name in table.columns], name, "the table", advice=NAME_A_COLUMN)
    except NoColumn:
        are_read = [isinstance(next(iter(each.dropna()), None), Chem.Mol) for _, each in table.items()]
        if name is not None or are_read.count(True) != 1:
            raise
        place = are_read.index(True)
    return place, [as_smiles(value) for value in table.iloc[:, place]]


def samples_under(smiles: Sequence[str | None], table: "DataFrame", conditions: AskedConditions) -> Smiles:
    if not (places := conditions.places([str(name) for name in table.columns], "the input", condition_argument)):
        return smiles
    rows = zip(*(map(str, table.iloc[:, place]) for place in places), strict=True)
    return [Sample(text, tuple(map(condition_text, row))) for text, row in zip(smiles, rows, strict=True)]


def as_smiles(value: object) -> str | None:
    """The SMILES of a molecule, or the text of a cell; None for a missing one and anything else."""
    if isinstance(value, Chem.Mol):
        return Chem.MolToSmiles(value)
    if isinstance(value, Real) and value == value:  # not NaN
        return str(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else None
