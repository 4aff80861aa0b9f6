"""Names of models: shipped weights, shipped table models and paths; cards of models."""

import os
from dataclasses import field
from difflib import get_close_matches
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from graphormer_sepnorm.config import first_problem
from graphormer_sepnorm.encodings.base import STRICT
from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.runs.archives import is_shared, opened_model, unpacked
from graphormer_sepnorm.runs.folder import RunFolder, runs_in
from graphormer_sepnorm.tables.formats import is_table_name
from graphormer_sepnorm.tasks import METRICS

RESOURCES = "graphormer_sepnorm.resources"
ARCHIVE = ".tar.xz"
CARD = "card.json"
PRETRAINED = {"foundation", "foundation-mini"}  # for fine-tuning and embeddings: they predict no property


def resolve_model(name: str | os.PathLike) -> Path:
    """The run folder or weights file of a path or of a shipped model by name; that of a shared file is in the cache."""
    path = Path(name)
    if os.path.isfile(path) and is_table_name(path):
        raise InputError(f"{name} is a table, not a model: name a run folder, a weights file or a shipped model")
    if os.path.isfile(path) and is_shared(path):
        return opened_model(path)
    if os.path.exists(path):
        return path
    weights, tables = shipped_models(), shipped_tables()
    if (archive := tables.get(str(name))) is not None:
        return unpacked(archive, str(name), archive.with_name(f"{name}.json"), CARD)
    if str(name) in weights:
        return weights[str(name)]
    names = sorted(weights | tables)
    similar = get_close_matches(path.name, [run.name for run in runs_in(path.parent)], n=1)
    near = did_you_mean(str(name), [*names, *(str(path.parent / run) for run in similar)])
    predicting = ", ".join(each for each in names if each not in PRETRAINED)
    listed = f"{predicting}; for fine-tuning {', '.join(sorted(PRETRAINED))}"
    raise InputError(f"{name} is neither a run folder, nor a weights file, nor a shipped model ({listed}){near}")


def shipped(ending: str) -> dict[str, Path]:
    """The files with this ending that come with the package, by name."""
    return {file.name.removesuffix(ending): file for file in resource_files() if file.name.endswith(ending)}


def resource_files() -> list[Path]:
    return [Path(str(entry)) for entry in resources.files(RESOURCES).iterdir()]


shipped_models = partial(shipped, ".safetensors")  # weights
shipped_tables = partial(shipped, ARCHIVE)  # table models: archives of their folders


@dataclass(frozen=True, config=STRICT)
class AssayLimit:
    """The lowest or highest value that an assay reports; predictions from ``value`` on, to its side, are near it."""

    value: float
    side: Literal["less", "more"]
    unit: Literal["", "uM"] = ""  # "" for the scale of the predictions, "uM" of predictions that are log10 of ug/mL
    meaning: str = ""  # in words, as the number of training labels near it
    labels: str = ""

    def __str__(self) -> str:
        return f"{self.value:g}{self.unit and ' '}{self.unit} or {self.side}"


@dataclass(frozen=True, config=STRICT)
class Endpoint:
    """A target of a model, with the source and licence of its data."""

    description: str  # what is measured, with the unit
    scale: str = ""  # how the target is computed from it, such as "log10"; "" for the value itself
    molecules: int | None = None  # for training
    rmse_out_of_fold: float | None = None
    others: dict[str, float] = field(default_factory=dict)  # RMSE of other models, by name
    limit: AssayLimit | None = None
    group: str = ""  # heading that it is listed under, such as "Absorption"
    direction: Literal["higher", "lower", ""] = ""  # of better values; "" if that depends
    score: float | None = None  # for molecules that the model did not learn
    metric: str = ""  # of the score, as in ``METRICS``
    source: str = ""
    licence: str = ""
    trust: str = ""  # a sentence on when not to trust the predictions

    def __post_init__(self) -> None:
        if (self.score is None) != (not self.metric) or self.metric not in ("", *METRICS):
            raise ValueError(f"a score needs its metric, one of {', '.join(METRICS)}")

    def facts(self) -> dict[str, Any]:
        """The known ones of its facts, as JSON values."""
        found = {
            "description": f"{self.scale} of {self.description}" if self.scale else self.description,
            "molecules": self.molecules,
            "rmse_out_of_fold": self.rmse_out_of_fold,
            "limit": self.limit and str(self.limit),
            "score": self.score,
        }
        texts = ("metric", "group", "direction", "source", "licence", "trust")
        found |= {name: getattr(self, name) or None for name in texts}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, config=STRICT)
class ModelCard:
    """Facts about a table model, in ``card.json`` in its folder: data and licence in words, and endpoints by target."""

    training_data: str
    licence: str
    endpoints: dict[str, Endpoint] = field(default_factory=dict)

    @property
    def limits(self) -> dict[str, AssayLimit]:
        return {target: endpoint.limit for target, endpoint in self.endpoints.items() if endpoint.limit}

    @property
    def descriptions(self) -> dict[str, str]:
        return {target: endpoint.description for target, endpoint in self.endpoints.items()}


READ_CARD = TypeAdapter(ModelCard)


def read_card(place: Path) -> ModelCard | None:
    """The card in a run folder; None if there is none; raises InputError if it is not valid."""
    path = place / CARD
    if not path.is_file():
        return None
    try:
        return READ_CARD.validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{path} is not a card: {first_problem(error)}") from None


def panel_parts(place: Path) -> list[Path]:
    """The run folders of the table models in the folder of a panel, which has their card; empty for any other path."""
    if RunFolder(place).stack.exists() or not (place / CARD).is_file():
        return []
    return [path for path in runs_in(place) if RunFolder(path).stack.exists()]


def card_facts(place: Path) -> dict[str, str]:
    """The training data and the licence in the card of a model; empty without a card."""
    card = read_card(place)
    return {"training_data": card.training_data, "licence": card.licence} if card else {}


def card_endpoints(place: Path) -> dict[str, dict[str, Any]]:
    """The facts in the card of a model by target, as ``Endpoint.facts``; empty without a card."""
    card = read_card(place)
    return {target: endpoint.facts() for target, endpoint in card.endpoints.items()} if card else {}
