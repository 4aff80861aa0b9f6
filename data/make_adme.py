"""Fits the table model that ships as ``adme`` to six assays of absorption, metabolism and binding.

    python data/make_adme.py FOLDER OUT.tar.xz

FOLDER holds HLM.csv, MDR1_ER.csv, RLM.csv, Sol.csv, hPPB.csv and rPPB.csv with the columns ``smiles`` and ``value``, in
log units. All rows are learned from; the scores that are printed are out of fold, five random folds. It fits the kernel
machine with the embedding of foundation-mini, which takes a few minutes, and writes an archive of about 8 MB.

Source: Fang et al., "Prospective Validation of Machine Learning Algorithms for Absorption, Distribution, Metabolism,
and Excretion Prediction: An Industrial Perspective", J. Chem. Inf. Model. 2023; the data are under the MIT licence.
"""

import argparse
import io
import json
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from graphormer_sepnorm.chem.properties import molecule_key, murcko_scaffold
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import fit_table, foundation_config
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.members.base import Setting
from graphormer_sepnorm.table_model.stacking import FOLDS, make_folds
from graphormer_sepnorm.tables.structures import Structures
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training.finetune import starting_from

BODY = "foundation-mini"
ASSAYS = {
    "HLM": "human liver microsomal clearance, log10 mL/min/kg",
    "MDR1_ER": "MDR1-MDCK efflux ratio, log10",
    "RLM": "rat liver microsomal clearance, log10 mL/min/kg",
    "Sol": "solubility at pH 6.8, log10 ug/mL",
    "hPPB": "human plasma protein binding, log10 % unbound",
    "rPPB": "rat plasma protein binding, log10 % unbound",
}


def read_assays(folder: Path) -> pd.DataFrame:
    """A row per molecule, a column per assay; values of one molecule are averaged."""
    columns = []
    for name in ASSAYS:
        table = pd.read_csv(folder / f"{name}.csv")
        keys = table.smiles.map(lambda text: molecule_key(read_smiles(text)))
        columns.append(pd.DataFrame({"smiles": table.smiles, "key": keys, name: table.value}))
    table = pd.concat(columns)
    return table.groupby("key", sort=False).agg({"smiles": "first", **dict.fromkeys(ASSAYS, "mean")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    table = read_assays(options.folder)
    smiles = table.smiles.tolist()
    labels = Labels(TaskConfig("regression", "rmse", tuple(ASSAYS)), table[list(ASSAYS)].to_numpy(np.float64))
    scaffolds, keys = [murcko_scaffold(text) for text in smiles], table.index.tolist()
    folds = make_folds(Structures(smiles, scaffolds, keys), labels, "random", 0, FOLDS)
    setting = Setting(starting_from(foundation_config(labels.task), BODY))
    fitted = fit_table(MoleculeFeatures(smiles), labels, folds, setting, ["kernel"])
    values, rmse = fitted.out_of_fold.values, METRICS["rmse"]
    for place, name in enumerate(ASSAYS):
        known = ~np.isnan(labels.y[:, place])
        score = rmse(labels.y[known, place, None], values[known, place, None])
        print(json.dumps({"assay": name, "molecules": int(known.sum()), "rmse out of fold": round(score, 4)}))
    with tempfile.TemporaryDirectory() as folder:
        fitted.model.save(Path(folder))
        options.out.write_bytes(packed(Path(folder)))


def packed(folder: Path) -> bytes:
    """An archive of the files of a folder, the same for the same files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:xz", preset=9) as archive:
        for path in sorted(folder.iterdir()):
            entry = tarfile.TarInfo(path.name)
            entry.size = path.stat().st_size
            with open(path, "rb") as file:
                archive.addfile(entry, file)
    return content.getvalue()


if __name__ == "__main__":
    main()
