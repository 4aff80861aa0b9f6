"""The model for users: loads weights by name, and predicts and embeds SMILES; M molecules, D width."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rdkit import Chem
from torch import nn

from graphormer_sepnorm.chem.features import read_graphs
from graphormer_sepnorm.chem.smiles import one_column
from graphormer_sepnorm.config import TEACHER, Config, ModelConfig, config_to_json
from graphormer_sepnorm.datasets.store import MoleculeDataset, in_memory
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import embed_dataset, predict_dataset
from graphormer_sepnorm.predict.predictors import pieces
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.arrays import check_one_network
from graphormer_sepnorm.runs.folder import CONFIG, WEIGHTS
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tables.formats.table import find_column
from graphormer_sepnorm.tasks import Task, make_task
from graphormer_sepnorm.tasks.scales import limited

if TYPE_CHECKING:
    from pandas import DataFrame

MOLECULES_PER_CHUNK = 8192
SCORES = ("epoch", "val_metric", "test")  # facts that only the weights have that were scored
SECONDS_TO_CONNECT = 5
CARD = """---
library_name: graphormer_sepnorm
license: mit
tags:
- chemistry
---
Graphormer with separate normalization of the CLS token, for molecular property prediction. Use it with

    from graphormer_sepnorm import Graphormer
    Graphormer.from_pretrained("this folder or repository").%s(["CCO", "c1ccccc1O"])
"""


def digest_of_model(model: nn.Module) -> str:
    """A digest of the parameters and buffers."""
    digest = hashlib.sha256()
    for part in checkpoint.digest_parts(model):
        digest.update(part)
    return digest.hexdigest()


def downloaded(name: str, local_files_only: bool, options: dict) -> Path:
    """The weights of a hub repository, or their local copy; OSError, with the reason, if there are none."""
    from huggingface_hub import hf_hub_download  # a fifth of a second
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        is_decided = local_files_only or options["force_download"]
        offline = local_files_only if is_decided else not hub_answers(name, options["revision"], options["token"])
        return Path(hf_hub_download(name, WEIGHTS, local_files_only=offline, **options))
    except (OSError, HfHubHTTPError, HFValidationError) as failure:
        raise OSError(type(failure).__name__) from None


def hub_answers(name: str, revision: str | None, token: str | bool | None) -> bool:
    """Whether the Hugging Face hub can be reached; raises if it answers that there are no such weights."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        get_hf_file_metadata(hf_hub_url(name, WEIGHTS, revision=revision), token=token, timeout=SECONDS_TO_CONNECT)
    except (HfHubHTTPError, HFValidationError):
        raise
    except Exception:  # of the HTTP library of huggingface_hub, which changes with its versions
        return False
    return True


class Graphormer(Network):
    """Graphormer that loads and saves weights, and reads SMILES.

    ``Graphormer(config)`` is an ordinary PyG model with random weights. ``predict``, ``embed`` and ``save_pretrained``
    also need its task and featurizer from ``run_config``, which ``from_pretrained`` or the user sets.

    Attributes:
        config: the architecture.
        run_config: the config of the whole run, ``None`` for a model that was not loaded.
        facts: facts about the weights, such as the epoch and the validation metric.
    """

    def __init__(self, config: ModelConfig):
        if not isinstance(config, ModelConfig):
            raise InputError(
                f"Graphormer needs a ModelConfig, such as slim((28,), (4,)) returns, not {config!r}; from_pretrained "
                "loads a model by its name"
            )
        super().__init__(config)
        self.run_config: Config | None = None
        self.facts: dict = {}
        self.came_with: tuple[dict, str] | None = None  # facts and digest of the weights that were loaded

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike,
        *,
        force_download: bool = False,
        token: str | bool | None = None,
        cache_dir: str | os.PathLike | None = None,
        local_files_only: bool = False,
        revision: str | None = None,
    ) -> "Graphormer":
        """Loads a model in evaluation mode; safetensors only, never pickle.

        Args:
            pretrained_model_name_or_path: a run folder, a weights file, the name of shipped weights, or a repository
                "owner/name" on the Hugging Face hub; tried in this order.
            force_download, token, cache_dir, local_files_only, revision: as in huggingface_hub, for a repository.

        Raises:
            InputError: nothing of that name is found, it is not a checkpoint of this package, or it is a run folder
                that predicts with more than one network.
        """
        name = str(pretrained_model_name_or_path)
        try:
            path = resolve_model(name)
        except InputError as error:
            if Path(name).parent.is_dir():
                raise
            options = {"revision": revision, "cache_dir": cache_dir, "force_download": force_download, "token": token}
            try:
                path = downloaded(name, local_files_only, options)
            except OSError as failure:
                raise InputError(f"{error}, nor a repository that could be downloaded ({failure})") from None
        check_one_network(path, name, predict=f"graphormer_sepnorm.load_model({name!r})")
        loaded, config, facts = checkpoint.load_as(cls, path)
        loaded.run_config, loaded.facts = config, facts
        loaded.came_with = dict(facts), digest_of_model(loaded)
        return loaded

    @classmethod
    def of(cls, network: Network, run: Config) -> "Graphormer":
        """A network and the config of its run, with a copy of its weights, in evaluation mode and on its device."""
        model = cls(network.config)
        model.load_state_dict(network.state_dict())
        model.run_config = run
        return model.to(network.cls.device).eval()

    def save_pretrained(self, save_directory: str | os.PathLike) -> None:
        """Writes ``model.safetensors``, ``config.json`` and a model card to a folder, which is created if necessary.

        Raises:
            InputError: ``run_config`` is not set or does not describe the model, or its weights are not finite float32;
                nothing is written then.
        """
        config, folder = self.known_run(), Path(save_directory)
        described = checkpoint.skeleton(config.model).state_dict()
        if self.state_dict().keys() != described.keys():
            raise InputError("the model has other norms or layers than its config, from which it could not be rebuilt")
        own = replace(self.config, dropout=config.model.dropout, attention_dropout=config.model.attention_dropout)
        if own != config.model:
            raise InputError("run_config describes another model: replace its model by the config of this model")
        checkpoint.check_tensors(self.state_dict(), described, folder / WEIGHTS)
        checkpoint.check_usable(config, Path("run_config"))
        checkpoint.save_model(folder / WEIGHTS, self, config, self.true_facts())
        write_atomically(folder / CONFIG, config_to_json(config).encode())
        write_atomically(folder / "README.md", (CARD % ("embed" if self.imitates else "predict")).encode())

    def true_facts(self) -> dict:
        """``facts``; without the scores of the weights that were loaded if the weights have changed since."""
        if self.came_with is None or digest_of_model(self) == self.came_with[1]:
            return self.facts
        old = {name: self.came_with[0].get(name) for name in SCORES}
        return {name: fact for name, fact in self.facts.items() if name not in old or fact != old[name]}

    def reset_parameters(self) -> None:
        """Draws all parameters again, as for a new model of this config, and resets the statistics of norms."""
        self.load_state_dict(Network(self.config).state_dict())
        self.facts = {}

    def known_run(self) -> Config:
        """``run_config``; raises InputError if it is not set."""
        if self.run_config is None:
            raise InputError(
                "the model does not know its task and featurizer: load it with from_pretrained, or set run_config to a "
                "Config, as in docs/for-developers/python.md"
            )
        return self.run_config

    @property
    def imitates(self) -> bool:
        """Whether its targets are numbers of another model's embeddings, so that it embeds and predicts nothing."""
        return all(target.startswith(TEACHER) for target in self.known_run().task.targets)

    @property
    def task(self) -> Task:
        """The task of ``run_config``: ``task.predict`` converts the output of ``forward`` as ``predict`` does.

        ``task.loss`` is the loss in training. Raises InputError if ``run_config`` is not set.
        """
        return make_task(self.known_run().task, self.cls.device)

    def predict(self, smiles: "DataFrame | Sequence[str | Chem.Mol]") -> np.ndarray:
        """Predictions float32 [M, tasks]: values on the original scale of the targets, or probabilities.

        These are the predictions of only this network. The command ``predict`` and ``load_model`` also use the
        forest, the calibration and other models of a run folder. Sets the model to evaluation mode.

        Args:
            smiles: M SMILES or RDKit molecules; or a DataFrame, whose column of SMILES is found as by the command.

        Raises:
            InputError: a SMILES cannot be read, and the message names its row; a DataFrame has no such column;
                ``run_config`` is not set; or the model imitates another one and predicts no property.
        """
        if self.imitates:
            raise InputError(
                "the model imitates the embeddings of another model and predicts no property: call embed, or fine-tune "
                "it with train FILE --from"
            )
        task = self.task
        predictions = self.rows(smiles, self.config.num_tasks, lambda molecules: predict_dataset(self, molecules, task))
        return limited(predictions, task.config.limits)

    def embed(self, smiles: "DataFrame | Sequence[str | Chem.Mol]") -> np.ndarray:
        """Final embeddings of the CLS, float32 [M, D]; input, mode and errors as ``predict``.

        With the readouts "mean" and "sum", no prediction reads them, so the last block is not trained for them.
        """
        return self.rows(smiles, self.config.width, lambda molecules: embed_dataset(self, molecules))

    def rows(self, smiles: Any, width: int, compute: Callable[[MoleculeDataset], np.ndarray]) -> np.ndarray:
        """Results of ``compute`` for prepared molecules, in bounded memory: float32 [M, width]."""
        if isinstance(smiles, str | Chem.Mol):
            raise InputError("give a list of molecules, not one molecule")
        if isinstance(smiles, Mapping):
            raise InputError("pass a DataFrame, a Series or a list of SMILES, not a dict")
        if hasattr(smiles, "columns"):
            names = [str(name) for name in smiles.columns]
            smiles = smiles.iloc[:, find_column(names, None, "the table", advice="pass it, as in table['NAME']")]
        featurizer = self.known_run().featurizer
        checkpoint.check_names(replace(self.known_run(), model=self.config), "run_config")
        self.eval()
        texts = list(one_column(smiles))
        rows = np.empty((len(texts), width), np.float32)
        for start in range(0, len(texts), MOLECULES_PER_CHUNK):
            graphs = read_graphs(featurizer, texts[start : start + MOLECULES_PER_CHUNK], start)
            for piece in pieces(graphs):
                rows[start + piece] = compute(in_memory(graphs.take(piece), self.config.encodings))
        return rows
