"""Compares how norms affect the CLS: geometry of the embeddings of a split, for several runs; m molecules, d width."""

import os
from pathlib import Path

import numpy as np
import torch

from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.explain.cls_geometry import effective_rank, isotropy, singular_values, uniformity
from graphormer_sepnorm.predict.forward import embed_dataset
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.device import current

MAX_MOLECULES = 5000


def analyze_run(run: Path, split: str = "test", root: str | os.PathLike | None = None) -> dict:
    """Measures of the CLS embeddings of a run on a split, sampled above ``MAX_MOLECULES``, as in ``cls_geometry``."""
    model, config, _ = checkpoint.load_model(run)
    data = load_split(RunFolder.around(run).dataset(config), split, config.model.encodings, root)
    embeddings = embed_dataset(model.to(current().device), data)
    if len(embeddings) > MAX_MOLECULES:
        embeddings = embeddings[np.random.default_rng(0).choice(len(embeddings), MAX_MOLECULES, replace=False)]
    x = torch.from_numpy(embeddings)
    of_run = {"run": str(run), "dataset": config.dataset, "split": split, "norm": config.model.norm}
    measures = {measure.__name__: measure(x) for measure in (effective_rank, uniformity, isotropy)}
    return {**of_run, "molecules": len(x), **measures, "singular_values": singular_values(x).tolist()}
