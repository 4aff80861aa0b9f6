"""SepNorm for existing transformers: ``separate_norms`` replaces the norms that act on token sequences.

Axis letters: n sequences, l tokens, d width.
"""

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.norms import NormLayer, SepNorm, ShareNorm, forbid_single_row, makes_norm, normalize_rows

Model = TypeVar("Model", bound=nn.Module)
TIMM_VIT = "timm.models.vision_transformer"
VISION_TRANSFORMER = f"{TIMM_VIT}.VisionTransformer"
VIT = "transformers.models.vit.modeling_vit"
VIT_MAE = "transformers.models.vit_mae.modeling_vit_mae"
SEQUENCE_NORMS: dict[str, tuple[str, ...]] = {
    "torch.nn.modules.transformer.TransformerEncoder": ("norm",),
    "torch.nn.modules.transformer.TransformerEncoderLayer": ("norm1", "norm2"),
    VISION_TRANSFORMER: ("norm_pre", "norm"),
    f"{TIMM_VIT}.Block": ("norm1", "norm2"),
    f"{TIMM_VIT}.ResPostBlock": ("norm1", "norm2"),
    f"{TIMM_VIT}.ParallelScalingBlock": ("in_norm",),
    **{
        f"transformers.models.{kind.lower()}.modeling_{kind.lower()}.{kind}{part}": ("LayerNorm",)
        for kind in ("Bert", "Roberta")
        for part in ("Embeddings", "SelfOutput", "Output")
    },
    f"{VIT}.ViTLayer": ("layernorm_before", "layernorm_after"),
    f"{VIT}.ViTModel": ("layernorm",),
    f"{VIT_MAE}.ViTMAELayer": ("layernorm_before", "layernorm_after"),
    f"{VIT_MAE}.ViTMAEModel": ("layernorm",),
    f"{VIT_MAE}.ViTMAEDecoder": ("decoder_norm",),
}
"""Class of a known layer -> its children that normalize [n, l, d]; as names, to avoid importing these libraries."""
TIMM_BLOCKS = {name for name in SEQUENCE_NORMS if name.startswith(TIMM_VIT)} - {VISION_TRANSFORMER}
VIT_TOKENS = ("forward", "forward_features", "_pos_embed")
"""Methods of timm's VisionTransformer that determine the position of the CLS."""
GPS_CONV = "torch_geometric.nn.conv.gps_conv.GPSConv"
TORCH_NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.modules.batchnorm._NormBase)


class SequenceSepNorm(nn.Module):
    """Separate normalization of sequences with special tokens at fixed positions, each with a norm of its own.

    Source: Chen et al., "On Separate Normalization in Self-supervised Transformers", NeurIPS 2023, section 3.

    Args:
        cls_norms: the norms of the special tokens, in the order of ``positions``.
        tok_norm: the norm of the other tokens.
        positions: increasing positions of the special tokens, all non-negative or all negative.
        batch_first: whether sequences are [n, l, d] or [l, n, d].
    """

    def __init__(
        self, cls_norms: Iterable[nn.Module], tok_norm: nn.Module, positions: tuple[int, ...], batch_first: bool
    ):
        super().__init__()
        self.cls_norm_layers = nn.ModuleList(cls_norms)
        self.tok_norm_layer = tok_norm
        self.positions = positions
        self.batch_first = batch_first

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes x, [n, l, d] if ``batch_first`` and [l, n, d] otherwise.

        Raises:
            ValueError: x has not three axes or is a nested tensor, a sequence is too short for the positions, or
                there is one sequence in training with a BatchNorm on a special token.
        """
        if x.is_nested or x.dim() != 3:
            raise ValueError(f"separate normalization needs a padded batch with 3 axes, got {x.dim()} axes")
        return self._normalize(x) if self.batch_first else self._normalize(x.transpose(0, 1)).transpose(0, 1)

    def _normalize(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        cuts = [p + length if p < 0 else p for p in self.positions]
        if cuts[0] < 0 or cuts[-1] >= length:
            raise ValueError(f"a sequence of {length} tokens has no special tokens at positions {self.positions}")
        gaps = [x[:, start + 1 : end] for start, end in pairwise((-1, *cuts, length))]
        tokens = normalize_rows(self.tok_norm_layer, torch.cat(gaps, dim=1), mask=None)
        first, *others = tokens.split([gap.shape[1] for gap in gaps], dim=1)
        parts = [first]
        for cut, norm, other in zip(cuts, self.cls_norm_layers, others, strict=True):
            forbid_single_row(norm, x.shape[0])
            parts += [norm(x[:, cut]).unsqueeze(1), other]
        return torch.cat(parts, dim=1)

    def extra_repr(self) -> str:
        return f"positions={self.positions}, batch_first={self.batch_first}"


@dataclass(frozen=True)
class NormReport:
    """The norms that ``separate_norms`` replaced, by qualified name, and why it skipped the others."""

    replaced: tuple[str, ...]
    skipped: dict[str, str]  # the reason of each

    def __str__(self) -> str:
        replaced = [f"{name}: replaced" for name in self.replaced]
        return "\n".join(replaced + [f"{name}: left alone, {reason}" for name, reason in self.skipped.items()])


@dataclass(frozen=True)
class FoundNorm:
    """A norm of a model: its location, and why it must not be replaced, if its location already rules that out."""

    name: str
    owner: nn.Module
    attribute: str
    norm: nn.Module
    doubt: str


def separate_norms(
    model: Model,
    cls_norm: NormLayer = nn.BatchNorm1d,
    tok_norm: NormLayer | Literal["keep"] = "keep",
    *,
    only: str = "",
    where: Callable[[str, nn.Module], bool] | None = None,
    also: str | None = None,
    cls_positions: int | Sequence[int] | None = None,
    batch_first: bool = True,
    inplace: bool = True,
) -> Model:
    """Gives the CLS token its own normalization layer wherever ``model`` normalizes token sequences.

    Supported are the norms of ``nn.TransformerEncoder`` and its layers (batch or sequence first), of timm's
    ``VisionTransformer`` and its blocks, of Hugging Face's ``BertModel``, ``RobertaModel``, ``ViTModel`` and
    ``ViTMAEModel``, also inside a larger model, and ``ShareNorm`` in Graphormer. All other norms are left unchanged.
    ``model.separated_norms``, a ``NormReport``, lists the norms that were replaced and skipped, and why.

    A new norm starts from the parameters and buffers of the one it replaces, if their names and shapes agree, and from
    its ``eps`` if both are of the same kind. With ``nn.LayerNorm`` on the CLS, a converted model therefore computes the
    same as before, except at positions under ``src_key_padding_mask``, which an inference path of
    ``nn.TransformerEncoder`` fills with zeros and separate norms do not.

    Convert the model before you wrap it in DistributedDataParallel and before you create the optimizer, because the CLS
    norms are new parameters. BatchNorm on the tokens would include padding. BatchNorm on a CLS that no attention has
    reached yet sees the same row n times and can only return its bias; exclude such a norm with ``where``.

    Source: Chen et al., "On Separate Normalization in Self-supervised Transformers", NeurIPS 2023.

    Args:
        model: any module.
        cls_norm: creates the norm of a special token from the width; BatchNorm1d in the paper.
        tok_norm: creates the norm of the other tokens from the width; "keep" uses the existing norm.
        only: regular expression; norms whose qualified name does not match anywhere are left unchanged.
        where: ``where(name, norm)`` is False for norms to leave unchanged.
        also: regular expression; qualified names of further norms that, according to the caller, act on [n, l, d].
        cls_positions: positions of the special tokens, increasing and all of the same sign; each gets its own norm. By
            default, only the CLS at position 0; a timm model with further special tokens is then left unchanged.
        batch_first: whether the norms in ``also`` see [n, l, d] or [l, n, d]; known layers define their own.
        inplace: whether to change ``model`` or a copy of it.

    Raises:
        InputError: no norm was replaced, ``cls_norm``, ``tok_norm`` or ``cls_positions`` is invalid, or the model is
            wrapped in DistributedDataParallel.
    """
    if not makes_norm(cls_norm):
        raise InputError(f"cls_norm must be a function that creates a norm from the width, got {cls_norm!r}")
    if tok_norm != "keep" and not makes_norm(tok_norm):
        raise InputError(f'tok_norm must be "keep" or a function that creates a norm from the width, got {tok_norm!r}')
    if any(isinstance(module, DistributedDataParallel) for module in model.modules()):
        raise InputError("the model is in DistributedDataParallel, which would not train new norms: separate first")
    positions = tuple(cls_positions) if isinstance(cls_positions, Sequence) else (cls_positions or 0,)
    if not positions or any(a >= b for a, b in pairwise(positions)) or positions[0] < 0 <= positions[-1]:
        raise InputError(f"cls_positions are increasing, and all negative or none, got {cls_positions!r}")
    for name, pattern in (("only", only), ("also", also)):
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise InputError(f"{name}={pattern!r} is not a regular expression: {error}") from None
    model = model if inplace else copy.deepcopy(model)

    def separated(place: FoundNorm) -> nn.Module:
        """The separate norm that replaces this one, with its device and type, or those of the model."""
        norm = place.norm
        like = next(chain(norm.parameters(), model.parameters()), torch.empty(0))
        shared = norm.norm_layer if isinstance(norm, ShareNorm) else norm
        cls_norms = [norm_like(shared, cls_norm, like) for _ in positions]
        tok = shared if tok_norm == "keep" else norm_like(shared, tok_norm, like)
        if isinstance(norm, ShareNorm):
            return SepNorm(width(shared), cls_norm=lambda _: cls_norms[0], tok_norm=lambda _: tok).train(norm.training)
        own = owner_batch_first(place.owner)
        return SequenceSepNorm(cls_norms, tok, positions, batch_first if own is None else own).train(norm.training)

    skipped: dict[str, str] = {}
    new: list[tuple[FoundNorm, nn.Module]] = []
    for norm in find_norms(model, positions_given=cls_positions is not None):
        reason = f"only is {only!r}" if not re.search(only, norm.name) else ""
        reason = reason or ("" if where is None or where(norm.name, norm.norm) else "where is False")
        if reason := reason or reason_to_leave(norm, also, positions):
            skipped[norm.name] = reason
        else:
            new.append((norm, separated(norm)))
    report = NormReport(tuple(norm.name for norm, _ in new), skipped)
    if not new:
        raise InputError(f"no norm of {type(model).__name__} was replaced\n{report}".rstrip())
    for norm, separate in new:
        setattr(norm.owner, norm.attribute, separate)
    for module in model.modules():  # inference paths of torch.nn read the weights of norms without calling them
        if isinstance(module, nn.TransformerEncoderLayer) and has_separate_norm(module):
            module.activation_relu_or_gelu = 0
        if isinstance(module, nn.TransformerEncoder) and has_separate_norm(module.layers):
            module.use_nested_tensor = False
    model.separated_norms = report  # type: ignore[assignment]  # to PyTorch every attribute is a tensor or a module
    return model


def is_norm(module: nn.Module) -> bool:
    known = isinstance(module, (*TORCH_NORMS, SepNorm, ShareNorm, SequenceSepNorm))
    return known or ("norm" in type(module).__name__.lower() and next(module.children(), None) is None)


def find_norms(model: nn.Module, positions_given: bool) -> list[FoundNorm]:
    """All norms of ``model`` in order; norms of a layer that is used in several places are listed once."""
    modules = dict(model.named_modules(remove_duplicate=False))
    norms: dict[tuple[int, str], FoundNorm] = {}
    for name, module in modules.items():
        *parents, attribute = name.split(".")
        within = [modules[".".join(parents[:depth])] for depth in range(len(parents) + 1)]
        if name and is_norm(module) and not any(map(is_norm, within[1:])):
            doubts = (doubt_within(within[:depth], positions_given) for depth in range(1, len(within) + 1))
            place = FoundNorm(name, within[-1], attribute, module, next(filter(None, doubts), ""))
            norms.setdefault((id(place.owner), attribute), place)
    homes = Counter(id(place.norm) for place in norms.values())
    shared = "one norm in several layers"
    return [replace(place, doubt=shared) if homes[id(place.norm)] > 1 else place for place in norms.values()]


def qualified_names(module: nn.Module) -> dict[str, type]:
    """Qualified name -> class, for the class of ``module`` and its bases."""
    return {f"{base.__module__}.{base.__qualname__}": base for base in type(module).__mro__}


def doubt_within(within: Sequence[nn.Module], positions_given: bool) -> str:
    """Why no norm inside the last of nested modules, from the whole model inwards, may be replaced; empty: they may."""
    module, names = within[-1], qualified_names(within[-1])
    if GPS_CONV in names:
        return "GPSConv normalizes packed node rows, which have no position for a CLS"
    if base := names.get(VISION_TRANSFORMER):  # timm's, or a class derived from it
        tokens: int = getattr(module, "num_prefix_tokens", 1)
        if not module.has_class_token:
            return "this VisionTransformer has no CLS token"
        if not positions_given and tokens > 1:
            return f"{tokens} special tokens in front: choose with cls_positions which to separate"
        if not positions_given and any(getattr(type(module), name) is not getattr(base, name) for name in VIT_TOKENS):
            return "this VisionTransformer assembles its tokens itself: set cls_positions"
        return ""
    cls_tokens = [getattr(module, "cls_token", None) for module in within]
    has_one_cls = any(isinstance(each, Tensor) and each.dim() == 3 and each.shape[1] == 1 for each in cls_tokens)
    if not positions_given and TIMM_BLOCKS & names.keys() and not has_one_cls:
        return "no module around this block has a single cls_token: set cls_positions"
    return ""


def reason_to_leave(place: FoundNorm, also: str | None, positions: tuple[int, ...]) -> str:
    """Why the norm must not be replaced; empty if it may be."""
    if isinstance(place.norm, SepNorm | SequenceSepNorm):
        return "already separate"
    if place.doubt:
        return place.doubt
    if isinstance(place.norm, ShareNorm):
        return "" if positions == (0,) else "Graphormer has its CLS at position 0 and no other special token"
    if len(getattr(place.norm, "normalized_shape", ())) != 1:
        return f"{type(place.norm).__name__} does not normalize only the last axis"
    if also is not None and re.search(also, place.name):
        return ""
    owner = type(place.owner).__name__
    for name, base in qualified_names(place.owner).items():
        if place.attribute in SEQUENCE_NORMS.get(name, ()):
            if type(place.owner).forward is not getattr(base, "forward", None):
                return f"{owner} overrides forward and may use its norms differently: include them with also"
            if isinstance(place.owner, nn.TransformerEncoder) and owner_batch_first(place.owner) is None:
                return "this TransformerEncoder has layers without batch_first: include its norm with also"
            return ""
    return f"not known to act on token sequences in {owner}: include it with also"


def owner_batch_first(owner: nn.Module) -> bool | None:
    """Whether a layer of ``torch.nn`` is batch first; None if it has no such attribute."""
    layer = owner.layers[0] if isinstance(owner, nn.TransformerEncoder) else owner
    return layer.self_attn.batch_first if isinstance(layer, nn.TransformerEncoderLayer) else None


def norm_like(norm: nn.Module, make: NormLayer, like: Tensor) -> nn.Module:
    """A new norm of the same width as ``norm``, with its parameters and buffers where names and shapes agree."""
    try:
        new = make(width(norm)).to(device=like.device, dtype=like.dtype)
    except TypeError as error:
        message = f"a norm is created from the width only, use functools.partial for the rest: {error}"
        raise InputError(message) from error
    own = new.state_dict()
    agreeing = {n: v for n, v in norm.state_dict().items() if n in own and own[n].shape == v.shape}
    new.load_state_dict(agreeing, strict=False)
    for name, parameter in norm.named_parameters():
        if name in agreeing:
            new.get_parameter(name).requires_grad_(parameter.requires_grad)
    if isinstance(new, type(norm)) or isinstance(norm, type(new)):
        new.eps = norm.eps
    return new


def width(norm: nn.Module) -> int:
    if isinstance(norm, nn.modules.batchnorm._NormBase):
        return norm.num_features
    sizes: tuple[int, ...] = getattr(norm, "normalized_shape", ())
    return sizes[0]


def has_separate_norm(module: nn.Module) -> bool:
    return any(isinstance(child, SequenceSepNorm) for child in module.modules())
