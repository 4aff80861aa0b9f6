"""Fits the table model that ships as ``adme`` to six assays of absorption, metabolism and binding.

    python data/make_adme.py FOLDER OUT.tar.xz --networks RUNS

FOLDER holds HLM.csv, MDR1_ER.csv, RLM.csv, Sol.csv, hPPB.csv and rPPB.csv with the columns ``smiles`` and ``value``, in
log units. All rows are used for training; the scores that are printed are out of fold, five random folds. The networks
are fine-tuned from foundation-mini in RUNS; if the command is interrupted, run it again to continue there.

Source: Fang et al., "Prospective Validation of Machine Learning Algorithms for Absorption, Distribution, Metabolism,
and Excretion Prediction: An Industrial Perspective", J. Chem. Inf. Model. 2023; the data are under the MIT licence.
"""

import argparse
import io
import json
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from graphormer_sepnorm.chem.properties import molecule_key, murcko_scaffold
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import fit_members, foundation_config, put_together
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.machines import Machines
from graphormer_sepnorm.table_model.members.base import ToFit
from graphormer_sepnorm.table_model.members.kernel import KernelMember, TunedKernelMember
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.model import Stacked, TableModel
from graphormer_sepnorm.table_model.reference import Encoder
from graphormer_sepnorm.table_model.stacking import FOLDS, make_folds
from graphormer_sepnorm.tables.splits import MoleculeStructure, Structures
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.training.finetune import starting_from

BODY = "foundation-mini"
EPOCHS, RATE = 20, 1e-3
STEP = 1 / 16  # of a standard deviation, to which embeddings of the training molecules are rounded
ASSAYS = {
    "HLM": "human liver microsomal clearance, log10 mL/min/kg",
    "MDR1_ER": "MDR1-MDCK efflux ratio, log10",
    "RLM": "rat liver microsomal clearance, log10 mL/min/kg",
    "Sol": "solubility at pH 6.8, log10 ug/mL",
    "hPPB": "unbound fraction in human plasma, log10 %",
    "rPPB": "unbound fraction in rat plasma, log10 %",
}
LIMITS = {"hPPB": (None, 2.0), "rPPB": (None, 2.0)}  # 100 %


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
    parser.add_argument("--networks", type=Path, required=True, help="folder for the training of the networks")
    options = parser.parse_args()
    table = read_assays(options.folder)
    smiles = table.smiles.tolist()
    limits = tuple(LIMITS.get(name, (None, None)) for name in ASSAYS)
    task = TaskConfig("regression", "rmse", tuple(ASSAYS), scales=("log10",) * len(ASSAYS), limits=limits)
    labels = Labels(task, table[list(ASSAYS)].to_numpy(np.float64))
    scaffolds, keys = [murcko_scaffold(text) for text in smiles], table.index.tolist()
    folds = make_folds(Structures(map(MoleculeStructure, smiles, scaffolds, keys)), labels, "random", 0, FOLDS)
    config = starting_from(foundation_config(labels.task), BODY)
    config = replace(config, train=replace(config.train, epochs=EPOCHS, lr=RATE))
    known = ToFit(MoleculeFeatures(smiles), labels, folds, config, options.networks, options.networks.exists(), True)
    model, found = fit(known)
    values, rmse = found.values, METRICS["rmse"]
    for place, name in enumerate(ASSAYS):
        known = ~np.isnan(labels.y[:, place])
        score = rmse(labels.y[known, place, None], values[known, place, None])
        print(json.dumps({"assay": name, "molecules": int(known.sum()), "rmse out of fold": round(score, 4)}))
    with tempfile.TemporaryDirectory() as folder:
        compressible(model).save(Path(folder))
        options.out.write_bytes(packed(Path(folder)))


def fit(table: ToFit) -> tuple[TableModel, Stacked]:
    """As ``fit_table``, with rounded embeddings, which take a quarter of the space in an archive."""
    body, molecules = Encoder.named(BODY), table.molecules
    molecules.computed[body] = rounded(molecules.of(body))
    fitted, _ = fit_members(table, ["kernel", "networks"])
    networks = fitted["networks"].member
    assert isinstance(networks, NetworksMember)
    molecules.computed[networks.embeddings] = rounded(molecules.of(networks.embeddings))
    fitted, _ = fit_members(replace(table, fitted=fitted), ["tuned kernel"])
    return put_together(fitted, table)


def rounded(embeddings: np.ndarray) -> np.ndarray:
    """Embeddings [M, ...] rounded to steps of ``STEP`` standard deviations from the mean."""
    mean, scale = embeddings.mean(axis=0), embeddings.std(axis=0)
    return (mean + scale * to_steps((embeddings - mean) / scale, STEP)).astype(np.float32)


def to_steps(values: np.ndarray, step: float | np.ndarray) -> np.ndarray:
    """Values as float32, rounded to multiples of the power of two nearest to ``step``."""
    power = np.exp2(np.round(np.log2(step)))
    return (np.round(values / power) * power).astype(np.float32)


def compressible(model: TableModel) -> TableModel:
    """The same model without the last digits of its rounded embeddings and of its coefficients."""
    kernel, tuned = model.members["kernel"], model.members["tuned kernel"]
    assert isinstance(kernel, KernelMember) and isinstance(tuned, TunedKernelMember)
    assert model.trust is not None
    reference, domain = kernel.reference, model.trust.domain
    space = replace(reference.space, embeddings=to_steps(reference.space.embeddings, STEP))
    reference = replace(reference, space=space)
    kernel = replace(kernel, reference=reference, machines=in_float32(kernel.machines))
    spaces = [replace(each, embeddings=to_steps(each.embeddings, STEP)) for each in tuned.spaces]
    tuned = replace(tuned, kernel=kernel, spaces=spaces, machines=[in_float32(each) for each in tuned.machines])
    domain = replace(domain, embeddings=to_steps(domain.embeddings, STEP * space.scale))
    members = {**model.members, "kernel": kernel, "tuned kernel": tuned}
    return replace(model, members=members, trust=replace(model.trust, domain=domain))


def in_float32(machines: Machines) -> Machines:
    """The machines with coefficients that float32 can hold."""
    return replace(machines, coefficients=machines.coefficients.astype(np.float32).astype(np.float64))


def packed(folder: Path) -> bytes:
    """An archive of the files of a folder, the same for the same files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:xz", preset=9) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size = path.stat().st_size
            with open(path, "rb") as file:
                archive.addfile(entry, file)
    return content.getvalue()


if __name__ == "__main__":
    main()
