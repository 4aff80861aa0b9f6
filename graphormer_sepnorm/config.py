"""Configuration of a run, as frozen dataclasses.

Parsing and construction are strict: an unknown key, a wrong type or a value out of range raises ``InputError``, or
pydantic's ``ValidationError`` if it is a field of an encoding.
"""

import math
from collections.abc import Collection
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import to_json

from graphormer_sepnorm.encodings import ENCODINGS, check_arrays
from graphormer_sepnorm.encodings.base import STRICT, Encoding
from graphormer_sepnorm.errors import InputError, did_you_mean, one_of
from graphormer_sepnorm.layers.norms import NORMS, TOKEN_NORM
from graphormer_sepnorm.layers.readouts import READOUTS, Readout
from graphormer_sepnorm.options import Option

Checked = TypeVar("Checked")
FORMAT_VERSION = 2
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Number = Annotated[int, Field(ge=0, le=1_000_000)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Probability = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0, le=1e3, allow_inf_nan=False)]
AsTuple = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)  # as JSON has lists
Sizes = Annotated[tuple[Count, ...], AsTuple, Field(min_length=1, max_length=100)]
Updates = Annotated[int, Field(ge=0, le=1_000_000_000)]
Schedule = Literal["cosine", "linear", "trapezoid"]
Kind = Literal["regression", "classification", "multiclass"]
Loss = Literal["l1", "mse"]  # of a regression
# How a number is learnt: as measured, by its logarithm, or as -log10 of a concentration in M that has this unit.
Scale = Literal["", "log10", "-log10 M", "-log10 mM", "-log10 uM", "-log10 nM", "-log10 pM"]
TEACHER = "teacher "  # begins the names of targets that are numbers of another model's embedding
Limit = Annotated[float, Field(allow_inf_nan=False)] | None
# Options that apply to each kind of task.
OPTIONS: dict[Kind, tuple[str, ...]] = {
    "regression": ("loss", "weights", "scales", "limits", "offset"),
    "classification": ("balance", "weights"),
    "multiclass": (),
}


def as_encoding(value: Any) -> Encoding:
    """An encoding, or one from its fields; ``ENCODINGS`` is read each time, so its entries can change at any time."""
    if isinstance(value, type) and hasattr(value, "precompute"):
        raise ValueError(f"this is the class of an encoding, call it: {value.__name__}()")
    if isinstance(value, Encoding):
        if value.name not in ENCODINGS:
            choices = f"{', '.join(ENCODINGS)}, or add it to ENCODINGS first"
            raise ValueError(f"unknown encoding {value.name!r}, choose one of {choices}")
        return value
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise ValueError("this is neither an encoding nor an object with the name of one")
    return TypeAdapter(ENCODINGS[one_of("encoding", name, ENCODINGS)]).validate_json(to_json(value))


def known_norm(name: str) -> str:
    """A name in ``NORMS``; raises ValueError for another one, and for an entry that is only a layer."""
    entry = NORMS[one_of("norm", name, NORMS)]
    made = entry.func if isinstance(entry, partial) else entry
    if isinstance(made, type) and not hasattr(made, "packed"):
        layer = f"nn.{made.__name__}" if made.__module__.startswith("torch.nn.") else made.__name__
        raise ValueError(f"the entry {name!r} of NORMS is one layer: use functools.partial(ShareNorm, norm={layer})")
    return name


def explained(cls: type[Checked]) -> type[Checked]:
    """Makes the constructor of a dataclass of pydantic raise ``InputError`` with one sentence."""
    construct: Any = cls.__init__

    @wraps(construct)
    def init(self: Checked, *args: Any, **fields: Any) -> None:
        try:
            construct(self, *args, **fields)
        except ValidationError as error:
            raise InputError(first_problem(error, cls.__annotations__)) from None

    cls.__init__ = init  # type: ignore[assignment]
    return cls


@explained
@dataclass(frozen=True, config=STRICT)
class ModelConfig:
    """Architecture of a Graphormer.

    Attributes:
        atom_sizes, bond_sizes: vocabulary sizes of the columns of ``x`` and of ``edge_attr``.
        num_tasks: number of values predicted per molecule.
        layers, width, ffn_width, heads: as in the paper's tables; ``width`` is a multiple of ``heads``.
        norm: a name in ``NORMS``.
        norm_position: "post" normalizes after each residual sum, "pre" before each sublayer.
        encodings: structural encodings; their terms for atoms and pairs are summed.
        messages: whether every block adds messages along bonds to the attention output of atoms. Source: Rampasek et
            al., "Recipe for a General, Powerful, Scalable Graph Transformer", NeurIPS 2022 (GraphGPS).
        message_gates: whether each channel of a message has a gate, which requires ``messages``.
        degree_scaling: whether every block scales the input that an atom receives from other atoms by its degree.
            Source: Ma et al., ICML 2023 (GRIT), the section on injecting degree information.
        attention_layers: number of last blocks with attention; None, or more than ``layers``: all. The blocks before
            them are local: atoms receive messages only from their neighbours, which requires ``messages``.
        atom_values: whether to add the mean and the sum of learned atom values to the output of the head; they are
            computed from the output of the local blocks.
        bias_hidden: hidden width of the network that maps pair features to the attention bias; 0: the sum of the pair
            features is the bias.
        readout: a name in ``READOUTS``, the input of the head.
        embedding_std: standard deviation of the initial embeddings of atoms and pairs; 0.02 in Graphormer.
        conditions: number of values, such as a temperature, that the head reads together with the molecule.
    """

    atom_sizes: Sizes
    bond_sizes: Sizes
    num_tasks: Count = 1
    layers: Annotated[int, Field(ge=1, le=1000)] = 12
    width: Count = 80
    ffn_width: Count = 80
    heads: Count = 8
    norm: Annotated[str, AfterValidator(known_norm)] = "sepnorm"
    norm_position: Literal["post", "pre"] = "post"
    encodings: Annotated[tuple[Annotated[Encoding, PlainValidator(as_encoding)], ...], AsTuple] = ()
    messages: bool = False
    message_gates: bool = False
    degree_scaling: bool = False
    attention_layers: Annotated[int, Field(ge=1, le=1000)] | None = None
    atom_values: bool = False
    bias_hidden: Annotated[int, Field(ge=0, le=100_000)] = 0
    readout: Annotated[str, AfterValidator(partial(one_of, "readout", choices=READOUTS))] = "cls"
    dropout: Annotated[Probability, Option("Dropout of each sublayer's output.")] = 0.0
    attention_dropout: Annotated[Probability, Option("Dropout of the attention weights.")] = 0.0
    embedding_std: Annotated[float, Field(gt=0, le=100)] = 0.02
    conditions: Annotated[int, Field(ge=0, le=100_000)] = 0

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.message_gates and not self.messages:
            raise ValueError("message_gates requires messages=True")
        if self.local_layers and not self.messages:
            raise ValueError(f"the {self.local_layers} layers without attention require messages=True")
        if len(set(names := [encoding.name for encoding in self.encodings])) < len(names):
            raise ValueError(f"an encoding is named twice: {', '.join(names)}")
        check_arrays(self.encodings)
        if missing := [name for name in TOKEN_NORM if not hasattr(NORMS[self.norm](self.width), name)]:
            raise ValueError(f"the entry {self.norm!r} of NORMS has no {' and no '.join(missing)}: see TokenNorm")
        if not isinstance(READOUTS[self.readout], Readout):
            raise ValueError(f"the entry {self.readout!r} of READOUTS is no Readout: use Readout(function, parts=1)")
        if hasattr(READOUTS[self.readout].read, "parameters"):
            reason = "is a module, whose parameters would not be trained: write a function"
            raise ValueError(f"the readout {self.readout!r} {reason}")

    @property
    def num_bond_types(self) -> int:
        """Number of combinations of bond features; bond types start at 1."""
        return math.prod(self.bond_sizes)

    @property
    def local_layers(self) -> int:
        """Number of blocks without attention; they come first."""
        return 0 if self.attention_layers is None else max(0, self.layers - self.attention_layers)

    def atoms_matter_after(self, layer: int) -> bool:
        """Whether the prediction depends on the atoms that leave a layer.

        It depends on those of the last layer only if the readout or the norm of the CLS uses them.
        """
        return layer < self.layers - 1 or self.readout != "cls" or NORMS[self.norm](self.width).cls_sees_atoms


@explained
@dataclass(frozen=True, config=STRICT)
class TrainConfig:
    """Optimization of a run; the help of an ``Option`` says what its field does. Facts beyond it:

    Attributes:
        batch_size: over all processes.
        schedule: decay from the peak, which is reached after ``warmup``: "cosine" (half a period), "linear", or
            "trapezoid", which stays at the peak until ``cooldown``, a fraction of all updates at the end.
        dropout_until: Source: Liu et al., "Dropout reduces underfitting", ICML 2023 ("early dropout").
        statistics_until: later epochs normalize by fixed statistics, as in evaluation. Rare molecules with large
            activations need this: they change the statistics of their own batch, but not those of evaluation.
        optimizer: a name in ``OPTIMIZERS``; an unknown one is rejected when training starts.
        averaging: of an exponential moving average; 0: no averaging.
        precision: of matrix products, "32-true" for float32 or "bf16-mixed" for bfloat16; weights are float32.
        start_from: run folder, weights file or name of shipped weights to start from, except for the last layer of the
            head; None: random weights.
        frozen_layers: number of first blocks of ``start_from`` that are frozen, and with them the embeddings.
        frozen_epochs: at most half of the epochs.
        keep: "best" by the validation metric, or "last", which does not depend on single validation molecules; it
            excludes ``patience``.
    """

    epochs: Annotated[Count, Option("Passes over the molecules.")] = 20
    min_updates: Annotated[Updates, Option("Minimum number of updates, for small tables.")] = 0
    batch_size: Annotated[int, Field(ge=2, le=1_000_000), Option("Molecules per update.")] = 64
    lr: Annotated[Rate, Option("Peak learning rate.")] = 1e-3
    warmup: Annotated[Fraction, Option("Fraction of all updates in which the rate rises.")] = 0.1
    schedule: Annotated[Schedule, Option("How the rate falls to zero after the peak.")] = "cosine"
    cooldown: Annotated[float, Field(gt=0, le=1), Option("Fraction of updates in which a trapezoid falls.")] = 0.1
    dropout_until: Annotated[Fraction, Option("Fraction of the epochs that have dropout.")] = 1.0
    statistics_until: Annotated[
        Fraction, Option("Fraction of the epochs in which BatchNorm uses the statistics of each batch.")
    ] = 1.0
    optimizer: Annotated[str, Option("Either adamw or muon.")] = "adamw"
    weight_decay: Annotated[float, Field(ge=0, le=10), Option("Weight decay of the weight matrices.")] = 0.01
    clip_norm: Annotated[Rate, Option("Maximum norm of the gradient.")] = 5.0
    averaging: Annotated[Probability, Option("Decay per update of the mean of weights that is evaluated.")] = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**31), Option("Seed of the initialization, order, dropout and split.")] = 0
    precision: Literal["32-true", "bf16-mixed"] = "32-true"
    compile: Annotated[bool, Option("Compile the model with PyTorch, which takes minutes; for GPUs.")] = False
    start_from: str | None = None
    frozen_layers: Annotated[int, Field(ge=0, le=1000)] = 0
    frozen_epochs: Annotated[Number, Option("First epochs in which only the head learns.")] = 0
    frozen_statistics: Annotated[bool, Option("Keep the statistics of BatchNorm that training starts from.")] = False
    patience: Annotated[Number, Option("Stop after this many epochs without improvement; 0: never.")] = 0
    keep: Annotated[
        Literal["best", "last"],
        Option("Epoch whose weights are kept: the best on validation, or the last; a FILE always keeps the last."),
    ] = "best"

    def __post_init__(self) -> None:
        if (self.frozen_layers or self.frozen_epochs or self.frozen_statistics) and self.start_from is None:
            raise ValueError("weights and statistics can be frozen only when training starts from a checkpoint")
        if self.schedule == "trapezoid" and self.warmup + self.cooldown > 1 + 1e-9:
            raise ValueError(f"warmup {self.warmup} and cooldown {self.cooldown} add up to more than 1")
        if self.patience and self.keep == "last":
            raise ValueError("patience requires keep=best: the last epoch is kept only of a complete training")


@explained
@dataclass(frozen=True, config=STRICT)
class TaskConfig:
    """The targets, the loss and the metric.

    Attributes:
        kind: "regression", "classification" (binary cross-entropy per target), or "multiclass" (softmax cross-entropy;
            the targets are the one-hot encoded classes of one column).
        metric: a name in ``METRICS``.
        targets: names of the target columns.
        mean, std: per target, the scaling of regression targets in training; undone in predictions.
        balance: whether positives weigh as much as negatives in the loss of a classification.
        pos_weight: per target, the weight of its positives computed by training if ``balance`` is set.
        loss: of a regression, "l1" or "mse", on scaled targets.
        weights: per target, the weight of its labels in the loss; empty: equal weights.
        scales: per target, the scale on which it is learnt and predicted; empty: as measured.
        limits: per target, the smallest and the largest possible value on its scale, None where there is none; empty:
            no limits. Predictions and ends of intervals do not go beyond.
        offset: per target of a regression on a table, a number near its labels, which members learn the differences
            from; empty: 0. Float32 has seven digits, too few for labels such as total energies.
        class_names: names of the classes 0 and 1 of each target of a classification, or once those of all classes of
            "multiclass"; empty: "0" and "1", or the targets.
    """

    kind: Kind
    metric: str
    targets: Annotated[tuple[str, ...], Field(min_length=1)]
    mean: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = ()
    std: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...] = ()
    balance: bool = False
    pos_weight: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...] = ()
    loss: Loss = "l1"
    weights: tuple[Rate, ...] = ()
    scales: tuple[Scale, ...] = ()
    limits: tuple[tuple[Limit, Limit], ...] = ()
    class_names: tuple[tuple[str, ...], ...] = ()
    offset: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = ()

    def __post_init__(self) -> None:
        if self.class_names and list(map(len, self.class_names)) != list(map(len, self.usual_classes)):
            raise ValueError(f"{len(self.targets)} targets of a {self.kind}, but {len(self.class_names)} class_names")
        for name, value in {name: getattr(self, name) for name in ("balance", *OPTIONS["regression"])}.items():
            if value not in (False, "l1", ()) and name not in OPTIONS[self.kind]:
                kinds = " or a ".join(kind for kind, names in OPTIONS.items() if name in names)
                raise ValueError(f"{name} is for a {kinds}, not for a {self.kind}")
            if isinstance(value, tuple) and len(value) not in (0, len(self.targets)):
                raise ValueError(f"{len(self.targets)} targets of a {self.kind}, but {len(value)} {name}")
        if any(low is not None and high is not None and low >= high for low, high in self.limits):
            raise ValueError("a lower limit is not below the upper limit")

    @property
    def usual_classes(self) -> tuple[tuple[str, ...], ...]:
        """The names of classes that have none of their own; empty for a regression."""
        return {"classification": (("0", "1"),) * len(self.targets), "multiclass": (self.targets,)}.get(self.kind, ())

    @property
    def differences(self) -> "TaskConfig":
        """The task of predicting the differences of the targets from their ``offset``."""
        if not self.offset:
            return self
        mean = tuple(mean - offset for mean, offset in zip(self.mean, self.offset, strict=True))
        return replace(self, mean=mean, offset=())

    @property
    def classes(self) -> tuple[tuple[str, ...], ...]:
        """The names of the classes, in the form of ``class_names``; empty for a regression."""
        return self.class_names or self.usual_classes


@explained
@dataclass(frozen=True, config=STRICT)
class Config:
    """A whole run: saved as ``config.json``, from which a model is rebuilt.

    Attributes:
        dataset: name in ``DATASETS`` or the path of a CSV file.
        featurizer: name in ``FEATURIZERS``; reads SMILES for this model.
    """

    dataset: str
    featurizer: str
    task: TaskConfig
    model: ModelConfig
    train: TrainConfig = TrainConfig()
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        if len(self.task.targets) != self.model.num_tasks:
            raise ValueError(f"{self.model.num_tasks} tasks, but {len(self.task.targets)} names of targets")
        for scale in (self.task.mean, self.task.std, self.task.pos_weight):
            if scale and len(scale) != self.model.num_tasks:
                raise ValueError(f"{self.model.num_tasks} tasks, but a scale for {len(scale)}")


@dataclass(frozen=True, config=ConfigDict(extra="ignore", strict=True))
class Format:
    """The part of a config that all versions of this package can parse."""

    format_version: int = FORMAT_VERSION


ADAPTER, FORMAT = TypeAdapter(Config), TypeAdapter(Format)


def config_to_json(config: Config) -> str:
    return ADAPTER.dump_json(config, indent=2).decode() + "\n"


def read_config(path: Path) -> Config:
    """Reads the ``config.json`` of a run; raises InputError as ``config_from_json``, or if the file cannot be read."""
    try:
        return config_from_json(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def config_from_json(text: str | bytes, source: str) -> Config:
    """Parses a config; ``source`` is the name of its file, for messages."""
    try:
        version = FORMAT.validate_json(text).format_version
        if version != FORMAT_VERSION:
            newer = f"this package reads up to {FORMAT_VERSION}: install a newer graphormer_sepnorm"
            advice = newer if version > FORMAT_VERSION else "which only versions before 0.2.0 read: train it again"
            raise InputError(f"{source} has format {version}, {advice}")
        return ADAPTER.validate_json(text)
    except ValidationError as error:
        raise InputError(f"{source}: {first_problem(error)}") from None
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None


def first_problem(error: ValidationError, fields: Collection[str] = ()) -> str:
    """One sentence about the first validation error; ``fields`` are the names that are allowed for an unknown one."""
    problem = error.errors(include_url=False)[0]
    where, message = ".".join(str(part) for part in problem["loc"]), problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "unexpected_keyword_argument" and where == problem["loc"][0]:
        message += did_you_mean(where, fields)
    if where and message.startswith("Input should "):
        return f"{where} {message.removeprefix('Input ')}"
    return ": ".join(filter(None, (where, message)))
