"""Compares how norms affect the CLS: geometry of the embeddings of a split, for several runs.

Axis letters: m molecules, d width.
"""

import os
from pathlib import Path

import numpy as np
import torch

from graphormer_sepnorm.datasets.load import load_split
from graphormer_sepnorm.explain.cls_geometry import effective_rank, isotropy, singular_values, uniformity
from graphormer_sepnorm.predict.forward import embed_dataset
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.device import current

MAX_MOLECULES = 5000


def analyze_run(run: Path, split: str = "test", root: str | os.PathLike | None = None) -> dict:
    """Measures of the CLS embeddings [m, d] of a run's best checkpoint on a split, as defined in ``cls_geometry``.

    They are computed on the device and in the precision of ``device.current``. From a split with more than
    ``MAX_MOLECULES`` molecules, this many are sampled, the same for every run.

    Args:
        run: run folder or weights file.
        split: "train", "val" or "test".
        root: folder of the downloaded datasets.

    Returns:
        ``run, dataset, split, norm, molecules, effective_rank, uniformity, isotropy, singular_values``.

    Raises:
        InputError: not a run, or a split that cannot be loaded.
    """
    model, config, _ = checkpoint.load_model(run)
    data = load_split(RunFolder.around(run).dataset(config), split, config.model.encodings, root)
    embeddings = embed_dataset(model.to(current().device), data)
    if len(embeddings) > MAX_MOLECULES:
        embeddings = embeddings[np.random.default_rng(0).choice(len(embeddings), MAX_MOLECULES, replace=False)]
    x = torch.from_numpy(embeddings)
    return {
        "run": str(run),
        "dataset": config.dataset,
        "split": split,
        "norm": config.model.norm,
        "molecules": len(x),
        "effective_rank": effective_rank(x),
        "uniformity": uniformity(x),
        "isotropy": isotropy(x),
        "singular_values": singular_values(x).tolist(),
    }
