"""Atom-level explanations of a prediction: integrated gradients, and attention as a second view.

Axis letters: n atoms of one molecule, L = n + 1 tokens, S copies of the molecule, H heads, D width.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from captum.attr import IntegratedGradients
from torch import Tensor

from graphormer_sepnorm.chem.features import FEATURIZERS, read_graphs
from graphormer_sepnorm.chem.properties import fragment_smiles, fragments
from graphormer_sepnorm.chem.smiles import one_molecule, read_smiles
from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.datasets.store import in_memory
from graphormer_sepnorm.encodings.base import Encoding, find_factor
from graphormer_sepnorm.errors import InputError, find_target
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Padding
from graphormer_sepnorm.kernels import Attention, make_attention
from graphormer_sepnorm.kernels.dense import PaddedAttention
from graphormer_sepnorm.model import Network, Structure
from graphormer_sepnorm.predict.forward import ATOMS_PER_BATCH
from graphormer_sepnorm.predict.pretrained import Graphormer
from graphormer_sepnorm.runs.numbers import decimals_for, shown
from graphormer_sepnorm.tables.writers.base import DIGITS
from graphormer_sepnorm.tasks import make_task

STEPS = (64, 256, 1024)
COMPLETENESS = 0.01
REFERENCE_MOLECULES = 256
SHARE_DECIMALS = 3


@dataclass(frozen=True)
class FragmentContribution:
    """A part of a molecule: its SMILES, the numbers of its atoms, and the sum of their contributions."""

    smiles: str
    atoms: tuple[int, ...]
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """A number for each atom of a molecule.

    The baseline plus the sum of the contributions is the model's output, on the target's own scale or log-odds.
    """

    smiles: str  # atoms are in its order
    caption: str  # text with target and prediction
    prediction: float  # on the target's own scale, or a probability
    meaning: str  # of the contributions
    contributions: np.ndarray  # float64 [n]
    baseline: float | None  # None if the method has none
    start: str = "average atoms"  # the molecule whose prediction is the baseline
    name: str = ""  # of the molecule in its table
    decimals: int | None = None  # of the labels, if known
    conditions: Mapping[str, str] = field(default_factory=dict)  # texts by name
    digits: int = DIGITS["number"]  # of prediction and baseline in files

    @cached_property
    def shown_decimals(self) -> int:
        """The decimals of its numbers for people: those of the labels, and one more if all contributions would be 0.

        Without known labels they are those of baseline and sum, and of shares of attention ``SHARE_DECIMALS``.
        """
        if self.baseline is None:
            return SHARE_DECIMALS
        if self.decimals is None:
            return decimals_for([self.baseline, float(self.contributions.sum())])
        largest = float(np.abs(self.contributions).max())
        return self.decimals + bool(largest and not round(largest, self.decimals))

    @cached_property
    def fragments(self) -> list[FragmentContribution]:
        """The fragments of the molecule, largest absolute contribution first."""
        mol = read_smiles(self.smiles)
        all_fragments = [
            FragmentContribution(fragment_smiles(mol, atoms), atoms, float(self.contributions[list(atoms)].sum()))
            for atoms in fragments(mol)
        ]
        return sorted(all_fragments, key=lambda fragment: (-abs(fragment.contribution), fragment.atoms))

    def facts(self) -> dict:
        """The explanation as JSON values."""
        molecule = {"name": self.name, "smiles": self.smiles, "conditions": dict(self.conditions)}
        said = {"caption": self.caption, "prediction": self.prediction, "meaning": self.meaning}
        parts = {"contributions": self.contributions.tolist(), "baseline": self.baseline, "start": self.start}
        known = {name: fact for name, fact in molecule.items() if fact}  # not all have a name and conditions
        return {**known, **said, **parts, "fragments": list(map(asdict, self.fragments))}


class Attributions(NamedTuple):
    """Contributions float64 [n] to a number, and the number for the molecule of average atoms."""

    contributions: np.ndarray
    baseline: float


class ExplainedTarget:
    def __init__(
        self, config: TaskConfig, device: torch.device, name: str | None, decimals: Mapping[str, int] | None = None
    ):
        self.task = make_task(config, device)
        names = config.targets
        self.name = names[0] if name is None else find_target(name, names)
        self.column = names.index(self.name)
        self.is_probability = self.task.predicts_probabilities
        self.class_name = config.classes[self.column][1] if config.kind == "classification" else ""
        self.decimals = (decimals or {}).get(self.name)

    def value(self, outputs: Tensor) -> Tensor:
        """Outputs [S, tasks] to log-odds, or to values on the target's own scale: [S]."""
        if not self.is_probability:
            return self.task.predict(outputs)[:, self.column]
        own = outputs[:, self.column]
        if not self.task.adds_up:
            return own
        return own - torch.cat([outputs[:, : self.column], outputs[:, self.column + 1 :]], dim=1).logsumexp(dim=1)

    def prediction(self, outputs: Tensor) -> float:
        return self.task.predict(outputs)[0, self.column].item()

    def caption(self, prediction: float) -> str:
        """The target and its prediction, for people; a probability is of class 1 if that has another name than 1."""
        if self.is_probability:
            of_class = f" of {self.class_name}" if self.class_name not in ("", "1") else ""
            value = shown(prediction, 2 if self.decimals is None else self.decimals)
            return f"{self.name}: probability{of_class} {value}"
        value = f"{prediction:.3g}" if self.decimals is None else shown(prediction, self.decimals)
        return f"{self.name} = {value}"

    def explanation(self, smiles: str, prediction: float, attributions: Attributions) -> Explanation:
        """The explanation of a prediction by contributions to it or its log-odds."""
        caption, digits = self.caption(prediction), DIGITS["precise" if self.task.config.offset else "number"]
        meaning = f"contribution to {'log-odds of ' * self.is_probability}{self.name}"
        return Explanation(smiles, caption, prediction, meaning, *attributions, decimals=self.decimals, digits=digits)


def one_batch(graphs: Graphs, encodings: tuple[Encoding, ...]) -> GraphBatch:
    """All molecules in one batch."""
    return in_memory(graphs, encodings).batch(np.arange(len(graphs)))


@functools.lru_cache(maxsize=4)
def reference_molecules(featurizer: str, encodings: tuple[Encoding, ...]) -> GraphBatch:
    """The first molecules of the embedded sample."""
    return one_batch(read_graphs(featurizer, sample_table().smiles[:REFERENCE_MOLECULES].tolist()), encodings)


@torch.no_grad()
def average_atom(model: Network, featurizer: str) -> Tensor:
    """The mean embedding [D] of the atoms of drug-like molecules, as a featurizer reads them."""
    batch = reference_molecules(featurizer, model.config.encodings).to(model.cls.device)
    return model.embed_atoms(batch, [encoding(batch) for encoding in model.encodings]).mean(dim=0)


class EmbeddedMolecule:
    """The output of a model's embedding layer for a molecule; sets the model to evaluation mode."""

    def __init__(self, model: Network, featurizer: str, smiles: str, conditions: Sequence[float] = ()):
        self.conditions = torch.tensor([conditions], device=model.cls.device)
        self.model = model.eval()
        reader = FEATURIZERS[featurizer]
        self.smiles, mol = reader.read(smiles)
        with one_molecule(self.smiles):
            graphs = reader.pack([reader.features(mol, self.smiles)])
        batch = one_batch(graphs, model.config.encodings).to(model.cls.device)
        with torch.no_grad():
            terms = [encoding(batch) for encoding in model.encodings]
            self.atoms = model.embed_atoms(batch, terms).unsqueeze(0)  # [1, n, D], with structural encodings
            self.averages = average_atom(model, featurizer).expand_as(self.atoms)
            self.pair_bias, self.pair_factor = model.pair_bias(batch, terms), find_factor(terms)
        self.edge_index, self.bond, self.in_degree = batch.edge_index, batch.bond, batch.in_degree

    def outputs(self, atoms: Tensor, attention: Callable[..., Attention] = make_attention) -> Tensor:
        """Model outputs [S, tasks] for S copies of the molecule with the atom embeddings [S, n, D]."""
        copies, num_atoms, _ = atoms.shape
        ptr = torch.arange(copies + 1, device=atoms.device) * num_atoms
        factor = None if self.pair_factor is None else self.pair_factor.repeat(copies, 1)
        attend = attention(ptr, self.pair_bias.repeat(copies, 1), self.model.cls_bias.detach(), factor)
        edge_index = (self.edge_index.unsqueeze(1) + ptr[:-1].unsqueeze(1)).flatten(1)  # [2, S e]
        structure = Structure(copies, attend, edge_index, self.bond.repeat(copies), self.in_degree.repeat(copies))
        local_atoms = self.model.run_local_blocks(atoms.flatten(0, 1), structure)
        conditions = self.conditions.expand(copies, -1) if self.conditions.numel() else None
        return self.model.read(local_atoms, *self.model.run_blocks(local_atoms, structure), ptr, conditions)


def attributions(molecule: EmbeddedMolecule, value: Callable[[Tensor], Tensor]) -> Attributions:
    """Contributions of the atoms to a model output, by integrated gradients over the atom embeddings.

    What the steps leave over is given to the atoms in proportion to their absolute contributions.

    Source: Sundararajan, Taly and Yan, "Axiomatic Attribution for Deep Networks", ICML 2017. Computed by Captum.
    """
    method = IntegratedGradients(lambda atoms: value(molecule.outputs(atoms)))
    copies = max(1, ATOMS_PER_BATCH // molecule.atoms.shape[1])
    for steps in STEPS:
        by_input, gap = method.attribute(
            molecule.atoms, molecule.averages, n_steps=steps, internal_batch_size=copies, return_convergence_delta=True
        )
        contributions = by_input[0].cpu().double().sum(dim=-1)
        if gap.abs().item() <= COMPLETENESS * contributions.abs().sum().item():
            break
    with torch.no_grad():
        start, end = (value(molecule.outputs(atoms)).item() for atoms in (molecule.averages, molecule.atoms))
    shares = torch.nn.functional.normalize(contributions.abs(), p=1, dim=0)
    return Attributions((contributions + (end - start - contributions.sum()) * shares).numpy(), start)


def integrated_gradients(
    model: Graphormer, smiles: str, target: str | None = None, decimals: Mapping[str, int] | None = None
) -> Explanation:
    """Contributions of the atoms to a network's prediction (or the log-odds of a probability).

    The baseline is the same molecule with ``average_atom`` in place of every atom. Baseline and contributions add up to
    the output for the molecule; steps are added until those of Captum do within ``COMPLETENESS`` of the absolute
    contributions. A baseline of zeros would be outside the training data: its predictions are arbitrary, and every atom
    would be credited with the difference.

    Args:
        model: model from ``Graphormer.from_pretrained``; set to evaluation mode.
        smiles: one molecule.
        target: name of the target; None: the first one.
        decimals: of predictions in captions, by target; otherwise two of probabilities, and three digits of values.

    Raises:
        InputError: the SMILES cannot be read, or there is no such target.
    """
    view, molecule = view_of(model, target, smiles, decimals)
    with torch.no_grad():
        prediction = view.prediction(molecule.outputs(molecule.atoms))
    return view.explanation(molecule.smiles, prediction, attributions(molecule, view.value))


def view_of(
    model: Graphormer, target: str | None, smiles: str, decimals: Mapping[str, int] | None
) -> tuple[ExplainedTarget, EmbeddedMolecule]:
    """A target and a molecule of a model that knows its run."""
    if not isinstance(model, Graphormer):
        advice = "Graphormer.from_pretrained(NAME) loads one, and load_model(NAME).explain(...) explains any model"
        raise InputError(f"this explains one network, not a {type(model).__name__}: {advice}")
    run: Config = model.known_run()
    view = ExplainedTarget(run.task, model.cls.device, target, decimals)
    return view, EmbeddedMolecule(model, run.featurizer, smiles)


class RecordedAttention(PaddedAttention):
    """Attention within one molecule that keeps its weights [L, L], rows for queries, the mean over heads."""

    def __init__(self, ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None = None):
        super().__init__(Padding.of(ptr), pair_bias, cls_bias, pair_factor)
        self.weights: list[Tensor] = []

    def __call__(self, qkv: Tensor, dropout: float) -> Tensor:
        length = qkv.shape[0]
        q, k, _ = qkv.view(length, 3, self.heads, -1).permute(1, 2, 0, 3)  # [H, L, D / H]
        scores = q @ k.mT / math.sqrt(q.shape[2]) + self.biases[0][0, :, :length, :length]
        self.weights.append(scores.softmax(dim=-1).mean(dim=0))
        return super().__call__(qkv, dropout)


def attention_rollout(
    model: Graphormer, smiles: str, target: str | None = None, decimals: Mapping[str, int] | None = None
) -> Explanation:
    """The share of each atom in the CLS embedding over all layers, by attention rollout.

    Each layer's attention, the mean over its heads, is averaged with the identity for the residual connection, and the
    layers are multiplied. The contributions are the row of the CLS without its own share, scaled to the sum 1. They
    have no sign and are the same for all targets. They do not include messages along bonds and factors of the attention
    weights. Args, Raises: as ``integrated_gradients``.

    Source: Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020.
    """
    view, molecule = view_of(model, target, smiles, decimals)
    recorded: list[RecordedAttention] = []

    def record(ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None) -> Attention:
        recorded.append(RecordedAttention(ptr, pair_bias, cls_bias, pair_factor))
        return recorded[0]

    with torch.no_grad():
        prediction = view.prediction(molecule.outputs(molecule.atoms, record))
    flow = torch.eye(len(recorded[0].weights[0]), dtype=torch.float64)
    for weights in recorded[0].weights:
        flow = (weights.cpu().double() + torch.eye(len(weights))) / 2 @ flow
    atoms, meaning = flow[0, 1:].numpy(), "share of what the CLS token reads"
    return Explanation(molecule.smiles, view.caption(prediction), prediction, meaning, atoms / atoms.sum(), None)


METHODS = {"gradients": integrated_gradients, "attention": attention_rollout}


def explained_rows(
    explain: Callable[[str], Explanation], featurizer: str, smiles: Sequence[str]
) -> dict[int, Explanation | InputError]:
    """For each row, from 0 on, its explanation, or why it cannot be read."""
    results: dict[int, Explanation | InputError] = {}
    for row, text in enumerate(smiles):
        try:
            results[row] = explain(FEATURIZERS[featurizer].read(text)[0])
        except InputError as error:
            results[row] = error
    return results
