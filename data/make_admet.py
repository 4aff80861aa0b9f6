"""Fits the panel that ships as ``admet``: one network that knows what table models of 43 endpoints know.

    python data/make_admet.py FOLDER RUNS

FOLDER holds ``tdc/NAME/train_val.csv.gz`` and ``test.csv.gz`` of the ADMET group of the Therapeutics Data Commons,
``panel/NAME.csv.gz`` of Admetica and Tox21, and ``adme/NAME.csv`` of Fang et al.; ``admet.csv`` next to this file names
the table, the source and the licence of each endpoint. In RUNS are what was finished, to continue after an
interruption, and the panel, whose archive and card are written into the package.

1. Teachers: a kernel machine and a forest for each table of at most ``MOST_TAUGHT`` molecules predict its endpoints for
   the molecules of all tables.
2. The student, a network that starts from foundation-mini, learns these predictions, and the labels of larger tables.
3. The panel: the student with its endpoints as two table models of one network, with intervals and calibrated
   probabilities from the test rows.

Test rows are the official ones of TDC and Fang, and a tenth of the families of the other tables. No label of a test row
is learnt; the test rows are scored once, when the panel is written.
"""

import argparse
import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from make_adme import packed

from graphormer_sepnorm.chem.properties import family_of, molecule_key, murcko_scaffold, parent_key
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.training_rows import TrainingRows, save_drugs
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model import reference
from graphormer_sepnorm.table_model.distill import part_of, train_student
from graphormer_sepnorm.table_model.features import MoleculeFeatures, looks
from graphormer_sepnorm.table_model.fit import fit_table, fit_trust, foundation_config
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.members.base import ToFit
from graphormer_sepnorm.table_model.stacking import make_folds
from graphormer_sepnorm.tables.splits import MoleculeStructure, Structures
from graphormer_sepnorm.tasks import METRICS

DATA = Path(__file__).parent
RESOURCES = DATA.parent / "graphormer_sepnorm" / "resources"
EPOCHS = 12  # of the student
MOST_TAUGHT = 7_500  # molecules of a table that has a teacher
MOST_COMPARED = 5_500  # molecules of a table whose kernel has no landmarks, which saves hours
LEAST = 0.02  # probability that the student learns for a class that is not there
PARTS = {"regression": "rmse", "classification": "rocauc"}
LIMITS = {"hPPB": (None, 2.0), "rPPB": (None, 2.0), "PPB": (0.0, 100.0)}  # 100 %
DRUGS = "1,111 drugs with a measured volume of distribution in humans (Lombardo and Jing, J. Chem. Inf. Model. 2016)"
TRAINING_DATA = (
    "tables of the Therapeutics Data Commons, of Admetica, of Tox21 and of Fang et al. (J. Chem. Inf. Model. 2023), "
    "without their test rows, on which the scores are computed. The student also learned what table models predict for "
    "molecules of other tables. These table models and the network it started from use embeddings distilled from "
    "MiniMol, whose pre-training has assays in common with some tables: do not score this model on their benchmarks."
)
LICENCE = "MIT. The data are under CC BY 4.0, MIT or in the public domain, as stated for each endpoint."
COLUMNS = {"smiles": "smiles", "Drug": "smiles", "Smiles": "smiles", "Structure": "smiles"}
VALUES = {"Y": "value", "Activity": "value", "Class": "value", "Substrate": "value", "value": "value"}


@dataclass(frozen=True)
class Tables:
    """All tables, with a row for each molecule.

    Attributes:
        molecules: ``smiles`` and ``family`` by ``molecule_key``.
        learnt, test: float64, a column for each endpoint, NaN where there is no label.
        kinds: "regression" or "classification", by endpoint.
        groups: endpoints that are measured on the same molecules.
    """

    molecules: pd.DataFrame
    learnt: pd.DataFrame
    test: pd.DataFrame
    kinds: dict[str, str]
    groups: list[list[str]]


def read_endpoints() -> pd.DataFrame:
    return pd.read_csv(DATA / "admet.csv", index_col="endpoint", keep_default_na=False)


def read_table(folder: Path, endpoint: str, table: str, scale: str) -> pd.DataFrame:
    """The rows of an endpoint that can be read, as ``key, smiles, family, value, test``."""
    source = folder / table
    if source.is_dir():
        parts = [
            pd.read_csv(source / f"{split}.csv.gz").assign(test=split == "test") for split in ("train_val", "test")
        ]
        rows = pd.concat(parts)
    elif table.startswith("adme/"):
        rows = pd.read_csv(source.with_name(f"{source.name}.csv"))
        rows["test"] = rows.split == "test"
    else:
        rows = pd.read_csv(source.with_name(f"{source.name}.csv.gz")).rename(columns={endpoint: "value"})
    rows = rows.rename(columns=COLUMNS | VALUES).dropna(subset=["value"])
    if scale and table.startswith("tdc/") and endpoint not in ("Caco2", "LogS"):  # which are logarithms already
        rows = rows[rows.value > 0].assign(value=np.log10(rows.value))
    identities = []
    for smiles in rows.smiles:
        try:
            mol = read_smiles(smiles)
            key = molecule_key(mol)
            identities.append((key, family_of(parent_key(mol, key))))
        except InputError:
            identities.append((None, None))
    rows[["key", "family"]] = identities
    rows = rows.dropna(subset=["key"])
    if "test" not in rows:
        rows["test"] = [int(hashlib.md5(family.encode()).hexdigest(), 16) % 10 == 0 for family in rows.family]
    return rows[["key", "smiles", "family", "value", "test"]]


def read_tables(folder: Path) -> Tables:
    """All tables; labels of one molecule are averaged, and contradictory classes are left out."""
    endpoints, found, kinds = read_endpoints(), {}, {}
    for name, facts in endpoints.iterrows():
        rows = found[name] = read_table(folder, str(name), facts.table, facts.scale)
        kinds[str(name)] = "classification" if set(rows.value) <= {0, 1} else "regression"
    whole = pd.concat(found.values())
    molecules = whole.groupby("key", sort=False)[["smiles", "family"]].first()
    learnt, test = pd.DataFrame(index=molecules.index), pd.DataFrame(index=molecules.index)
    for name, rows in found.items():
        held = rows[rows.test]
        for frame, part in ((test, held), (learnt, rows[~rows.test & ~rows.key.isin(held.key)])):
            mean = part.groupby("key").value.mean()
            frame[name] = mean.where(mean.isin([0, 1])) if kinds[str(name)] == "classification" else mean
    return Tables(molecules, learnt, test, kinds, groups_of(endpoints.table))


def groups_of(tables: pd.Series) -> list[list[str]]:
    """The endpoints that one teacher predicts: those of Fang, the isoforms of CYP, and the targets of Tox21."""

    def group(name: str) -> str:
        known = ("adme/", "panel/tox21", "_substrate_carbonmangels", "_veith", "panel/cyp")
        place = next((place for place in known if place in tables[name]), tables[name])
        return "_veith" if place == "panel/cyp" else place

    return [list(names) for _, names in tables.index.to_series().groupby(group, sort=False)]


def teach(tables: Tables, runs: Path) -> pd.DataFrame:
    """The outputs that the student learns, a column for each endpoint: of classes log-odds, mostly of the teachers."""
    pool, found = MoleculeFeatures(tables.molecules.smiles.tolist()), {}
    reference.MOST_ROWS = MOST_COMPARED
    for names in tables.groups:
        labels = tables.learnt[names]
        has_label = labels.notna().any(axis=1).to_numpy()
        if has_label.sum() > MOST_TAUGHT:
            values = labels.to_numpy()
        else:
            stored = runs / f"teacher-{names[0]}.npy"
            if not stored.exists():
                np.save(stored, predicted_by_teacher(tables, pool, names, np.flatnonzero(has_label)))
            values = np.load(stored)
        if tables.kinds[names[0]] == "classification":
            values = np.clip(values, LEAST, 1 - LEAST)
            values = np.log(values) - np.log1p(-values)
        found |= dict(zip(names, values.T, strict=True))
    return pd.DataFrame(found, index=tables.molecules.index)


def predicted_by_teacher(tables: Tables, pool: MoleculeFeatures, names: list[str], rows: np.ndarray) -> np.ndarray:
    """Predictions for all molecules by a table model that is fitted to some of them."""
    kind, learnt = tables.kinds[names[0]], tables.molecules.iloc[rows]
    task = TaskConfig(kind, PARTS[kind], tuple(names))
    config = foundation_config(task)
    pool.read(config.featurizer)
    pool.of(reference.Encoder.named(reference.BODY))
    labels = Labels(task, tables.learnt[names].to_numpy(np.float64)[rows])
    scaffolds = [murcko_scaffold(text) for text in learnt.smiles]
    structures = Structures(map(MoleculeStructure, learnt.smiles, scaffolds, learnt.index, learnt.family))
    table = ToFit(pool.take(rows), labels, make_folds(structures, labels, "random", 0), config)
    model = fit_table(table, ["kernel", "forest"])
    pieces = np.array_split(np.arange(len(pool)), max(len(pool) // 2_000, 1))
    return np.concatenate([model.model.final(model.model.stacked(pool.take(piece)).values) for piece in pieces])


def write_panel(tables: Tables, student: Path, out: Path) -> None:
    """Writes the two models and the predictions for drugs into ``out``, and archive and card into the package."""
    network, config, _ = checkpoint.load_model(student)
    endpoints = read_endpoints()
    rows = np.flatnonzero(tables.learnt.notna().any(axis=1))
    smiles = tables.molecules.smiles.iloc[rows].tolist()
    domain = fit_domain(smiles, looks=MoleculeFeatures(smiles).of(looks))
    tested = tables.test.notna().any(axis=1).to_numpy()
    is_drug = (tables.learnt.VDss.notna() | tables.test.VDss.notna()).to_numpy()
    facts, drugs = {}, {}
    for kind, metric in PARTS.items():
        names = [name for name in endpoints.index if tables.kinds[name] == kind]
        numbers = kind == "regression"
        scales = tuple(endpoints.scale[names]) if numbers else ()
        limits = tuple(LIMITS.get(name, (None, None)) for name in names) if numbers else ()
        model = part_of(network, config, TaskConfig(kind, metric, tuple(names), scales=scales, limits=limits))
        y = tables.test[names].to_numpy(np.float64)[tested]
        values = model.predict(tables.molecules.smiles[tested].tolist()).values.astype(np.float64)
        learnt = TrainingRows.of(tables.learnt[names].to_numpy(np.float64)[rows])
        trust = fit_trust(domain, Labels(model.task, y), values, np.zeros_like(values))
        model = replace(model, trust=replace(trust, rows=learnt))
        model.save(out / kind)
        found = model.predict(tables.molecules.smiles[is_drug].tolist()).values
        drugs |= dict(zip(names, found.T, strict=True))
        for place, name in enumerate(names):
            known = ~np.isnan(y[:, place])
            score = METRICS[metric](y[known, place, None], values[known, place, None])
            facts[name] = {
                "molecules": int(tables.learnt[name].notna().sum()),
                **({} if numbers else {"positives": round(tables.learnt[name].mean(), 3)}),
                "metric": metric,
                "score": round(score, 3),
            }
    columns = ["group", "description", "scale", "direction", "source", "licence", "trust"]
    card = {name: endpoints.loc[name, columns].to_dict() | facts[name] for name in endpoints.index}
    for name, known in json.loads((RESOURCES / "adme.json").read_text())["endpoints"].items():
        if "limit" in known:
            card[name]["limit"] = known["limit"] | {"labels": ""}
    save_drugs(out, np.stack([drugs[name] for name in endpoints.index], axis=1), endpoints.index.tolist(), DRUGS)
    content = {"training_data": TRAINING_DATA, "licence": LICENCE, "endpoints": card}
    (RESOURCES / "admet.json").write_text(json.dumps(content, indent=2) + "\n")
    (RESOURCES / "admet.tar.xz").write_bytes(packed(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("runs", type=Path)
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    tables = read_tables(options.folder)
    run = RunFolder(options.runs / "student")
    outputs = teach(tables, options.runs)
    train_student(tables.molecules.smiles.tolist(), outputs.to_numpy(np.float32), list(outputs), run, EPOCHS)
    write_panel(tables, run.path, options.runs / "panel")


if __name__ == "__main__":
    main()
