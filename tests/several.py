"""Table models of one tiny network, as students are, and a panel of two of them on one trunk."""

import json
import shutil
import tarfile
from pathlib import Path

import numpy as np

from graphormer_sepnorm.predict.classes import fit_class_sets
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.training_rows import TrainingRows, save_drugs
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.table_model.features import Conditions
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.model import TableModel
from tests.tiny import tiny_model

LEARNT = ["CCO", "CCN", "c1ccccc1O", "CC(=O)O", "CCCl", "CCCC", "c1ccncc1", "CCOC", "CC#N", "CCS"]
CARD = {
    "training_data": "ten molecules",
    "licence": "MIT",
    "endpoints": {
        "toxic": {"description": "whether it kills", "group": "Toxicity", "score": 0.8, "metric": "rocauc"},
        "hERG": {"description": "pIC50", "group": "Toxicity", "direction": "lower", "licence": "CC BY 4.0"},
        "Papp": {"description": "permeability, cm/s", "group": "Absorption", "limit": {"value": 9, "side": "less"}},
        "bound": {"description": "whether it is bound", "source": "a table", "trust": "Do not trust it for salts."},
    },
}


def save_student(
    folder: Path, targets: tuple[str, ...], kind: str = "regression", learnt: list[str] = LEARNT, **options: object
) -> Path:
    """Writes a table model of one network with intervals or sets, and labels 0, 1, 2, ..., or classes by turns."""
    conditions = options.pop("conditions", Conditions())
    network, config = tiny_model("mol", targets, kind, **options)
    is_class = kind == "classification"
    labels = np.arange(len(learnt) * len(targets)).reshape(-1, len(targets))
    labels = (np.arange(len(learnt))[:, None] + np.arange(len(targets))) % 2 if is_class else labels
    zeros, errors = np.zeros(labels.shape), (labels + 1) / 20
    trust = Trust(
        fit_domain(learnt, np.arange(16.0 * len(learnt), dtype=np.float32).reshape(-1, 16)),
        None if is_class else fit_intervals(errors, zeros, zeros + 0.1),
        rows=TrainingRows.of(labels.astype(float)),
        class_sets=fit_class_sets(labels, np.linspace(0.1, 0.9, labels.size).reshape(labels.shape), False)
        if is_class
        else None,
    )
    member = NetworksMember([(network, config, {})])
    ones = np.ones((1, len(targets)))
    folder.mkdir(parents=True)
    TableModel(config.task, "mol", {"networks": member}, ones, trust, conditions=conditions).save(folder)
    return folder


def save_panel(folder: Path) -> Path:
    """Writes a panel of a regression and a classification."""
    save_student(folder / "regression", ("hERG", "Papp"))
    save_student(folder / "classification", ("toxic", "bound"), "classification")
    (folder / "card.json").write_text(json.dumps(CARD))
    save_drugs(folder, np.array([[0.5, 1], [0.1, 3], [0.3, 2], [0.2, 0]]), ["toxic", "hERG"], "four drugs")
    return folder


def ship(panel: Path, resources: Path) -> None:
    """Packs a panel as a shipped model called ``small``."""
    resources.mkdir()
    with tarfile.open(resources / "small.tar.xz", "w:xz", preset=0) as archive:
        for path in panel.rglob("*.*"):
            if path.name != "card.json":
                archive.add(path, path.relative_to(panel).as_posix())
    shutil.copy(panel / "card.json", resources / "small.json")
