import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.norms import SepNorm, ShareNorm
from graphormer_sepnorm.layers.separate import SequenceSepNorm, separate_norms

WIDTH = 16
PAGES = [Path(__file__).parents[3] / "docs/for-researchers" / name for name in ("index.md", "other-transformers.md")]


@dataclass(frozen=True)
class Family:
    """A small model, arguments of a call, and functions that return its CLS and all tokens."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], dict[str, Tensor]]
    read: Callable[[object], Tensor] = lambda output: output
    num_norms: int = 4
    positions: int | tuple[int, ...] | None = None


def encoder_layer(**options) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.0, **options)


def encoder(**options) -> nn.TransformerEncoder:
    norm = nn.LayerNorm(WIDTH) if options.get("norm_first") else None
    return nn.TransformerEncoder(encoder_layer(**options), 2, norm, enable_nested_tensor=False)


def timm_vit(name: str = "vit_tiny_patch16_224", **options) -> nn.Module:
    timm = pytest.importorskip("timm")
    return timm.create_model(name, img_size=32, embed_dim=WIDTH, depth=2, num_heads=2, num_classes=3, **options)


def hugging_face(kind: str, config_kind: str, **options) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, config_kind)(
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **options,
    )
    return getattr(transformers, kind)(config)


def sequences() -> dict[str, Tensor]:
    return {"src": torch.randn(4, 5, WIDTH)}


def padded_sequences() -> dict[str, Tensor]:
    mask = torch.zeros(4, 5, dtype=torch.bool)
    mask[1:, 3:] = True
    return {**sequences(), "src_key_padding_mask": mask}


def images(name: str) -> dict[str, Tensor]:
    return {name: torch.randn(4, 3, 32, 32)}


def sentences() -> dict[str, Tensor]:
    mask = torch.ones(4, 6, dtype=torch.long)
    mask[2:, 4:] = 0
    return {"input_ids": torch.randint(5, 90, (4, 6)), "attention_mask": mask}


def hidden(output) -> Tensor:
    return output.last_hidden_state


FAMILIES = {
    "encoder": Family(partial(encoder, batch_first=True), sequences),
    "encoder-padded": Family(partial(encoder, batch_first=True), padded_sequences, read=lambda out: out[:, :3]),
    "encoder-sequence-first": Family(encoder, sequences),
    "encoder-pre-norm": Family(partial(encoder, batch_first=True, norm_first=True), sequences, num_norms=5),
    "timm": Family(timm_vit, partial(images, "x"), num_norms=5),
    "timm-clip": Family(partial(timm_vit, pre_norm=True), partial(images, "x"), num_norms=6),
    "timm-res-post": Family(lambda: timm_vit(block_fn=timm_block("ResPostBlock")), partial(images, "x"), num_norms=5),
    "timm-parallel": Family(
        lambda: timm_vit(block_fn=timm_block("ParallelScalingBlock")), partial(images, "x"), num_norms=3
    ),
    "deit": Family(
        partial(timm_vit, "deit_tiny_distilled_patch16_224"), partial(images, "x"), num_norms=5, positions=(0, 1)
    ),
    "bert": Family(partial(hugging_face, "BertModel", "BertConfig", vocab_size=99), sentences, hidden, 5),
    "roberta": Family(
        partial(hugging_face, "RobertaModel", "RobertaConfig", vocab_size=99), sentences, hidden, num_norms=5
    ),
    "vit": Family(
        partial(hugging_face, "ViTModel", "ViTConfig", image_size=32), partial(images, "pixel_values"), hidden, 5
    ),
    "vit-mae": Family(
        partial(hugging_face, "ViTMAEModel", "ViTMAEConfig", image_size=32, mask_ratio=0.5),
        lambda: {**images("pixel_values"), "noise": torch.rand(4, 4)},
        hidden,
        num_norms=5,
    ),
}
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def timm_block(name: str) -> type[nn.Module]:
    return getattr(pytest.importorskip("timm.models.vision_transformer"), name)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def trained(model: nn.Module) -> nn.Module:
    """Gives every norm different weights and biases, as training does."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.5, 0.5)
    return model


def separate_all(family: Family, **options) -> nn.Module:
    return separate_norms(trained(family.make()), cls_positions=family.positions, **options)


def separate_modules(model: nn.Module) -> list[SequenceSepNorm]:
    return [module for module in model.modules() if isinstance(module, SequenceSepNorm)]


# Normalization itself


def separate_literal(positions: tuple[int, ...]) -> SequenceSepNorm:
    cls_norms = [nn.BatchNorm1d(2, eps=1e-12) for _ in positions]
    return SequenceSepNorm(cls_norms, nn.LayerNorm(2, eps=1e-12), positions, batch_first=True)


def test_cls_is_normalized_over_the_batch_and_tokens_over_the_width():
    x = torch.tensor([[[1.0, 10.0], [2.0, 4.0], [9.0, 1.0]], [[3.0, 30.0], [5.0, 5.5], [0.0, 8.0]]])
    expected = torch.tensor([[[-1.0, -1], [-1, 1], [1, -1]], [[1, 1], [-1, 1], [-1, 1]]])
    torch.testing.assert_close(separate_literal((0,))(x), expected)


@pytest.mark.parametrize(
    ("positions", "order"),
    [((-1,), [1, 2, 3, 0]), ((2,), [1, 2, 0, 3]), ((0, 1), [0, 1, 2, 3]), ((-3, -1), [2, 0, 3, 1])],
)
def test_special_tokens_elsewhere_are_normalized_as_in_front(positions, order):
    x = torch.randn(5, 4, 2)
    front = separate_literal(tuple(range(len(positions))))
    torch.testing.assert_close(separate_literal(positions)(x[:, order]), front(x)[:, order])


def test_each_special_token_has_a_norm_of_its_own():
    out = separate_literal((0, 1))(torch.randn(6, 4, 2) + torch.tensor([0.0, 50, 0, 0]).view(1, 4, 1))
    torch.testing.assert_close(out[:, :2].mean(dim=0), torch.zeros(2, 2), atol=1e-5, rtol=0)


# Conversion of known models


@every_family
@torch.no_grad()
def test_layernorm_on_the_cls_leaves_the_output_unchanged(family):
    model = trained(family.make()).eval()
    inputs = family.inputs()
    before = family.read(model(**inputs))
    model = separate_norms(model, cls_norm=nn.LayerNorm, cls_positions=family.positions)
    torch.testing.assert_close(family.read(model(**inputs)), before, atol=1e-6, rtol=0)


@every_family
def test_all_norms_on_token_sequences_are_replaced_and_reported(family):
    model = separate_all(family)
    assert len(model.separated_norms.replaced) == len(separate_modules(model)) == family.num_norms
    for name in model.separated_norms.replaced:
        assert isinstance(model.get_submodule(name), SequenceSepNorm)


@every_family
def test_batchnorm_changes_the_output_and_all_new_parameters_learn(family):
    model = trained(family.make())
    inputs = family.inputs()
    before = family.read(model(**inputs))
    model = separate_norms(model, cls_positions=family.positions)
    after = family.read(model(**inputs))
    assert not torch.allclose(after, before, atol=1e-3)
    after.square().sum().backward()
    for norm in separate_modules(model):
        assert all(parameter.grad is not None for parameter in norm.parameters())
        assert all(cls_norm.num_batches_tracked == 1 for cls_norm in norm.cls_norm_layers)


@every_family
def test_state_dict_round_trip_and_independent_deep_copy(family):
    model = separate_all(family).eval()
    inputs = family.inputs()
    twin = copy.deepcopy(model)
    other = separate_norms(family.make(), cls_positions=family.positions).eval()
    other.load_state_dict(model.state_dict())
    assert twin.separated_norms == model.separated_norms
    expected = family.read(model(**inputs)).detach().clone()
    for parameter in model.parameters():
        parameter.data.zero_()
    torch.testing.assert_close(family.read(twin(**inputs)), expected)
    torch.testing.assert_close(family.read(other(**inputs)), expected)


# Inference paths of torch.nn


@pytest.mark.parametrize("layers", [{0, 1}, {0}, {1}], ids=["both", "first", "second"])
@pytest.mark.parametrize("attribute", ["norm1", "norm2", "norm[12]"])
def test_inference_paths_do_not_bypass_the_norms(layers, attribute):
    model = trained(nn.TransformerEncoder(encoder_layer(batch_first=True), 2)).eval()
    chosen = "|".join(rf"layers\.{layer}\.{attribute}" for layer in layers)
    model = separate_norms(model, only=chosen)
    for norm in separate_modules(model):
        norm.cls_norm_layers[0].running_mean.normal_()
    inputs = padded_sequences()
    slow = model(**inputs)
    assert slow.requires_grad
    with torch.no_grad():
        fast = model(**inputs)
    torch.testing.assert_close(fast[:, :3], slow[:, :3])
    torch.testing.assert_close(fast[:1], slow[:1])


# What starts from what


def test_batchnorm_on_the_cls_starts_from_the_affine_parameters_and_keeps_its_eps():
    layer = trained(encoder_layer(layer_norm_eps=0.25))
    weight, bias = layer.norm1.weight.clone(), layer.norm1.bias.clone()
    kept = layer.norm1
    norm = separate_norms(layer).norm1
    assert norm.tok_norm_layer is kept
    assert norm.cls_norm_layers[0].weight.equal(weight)
    assert norm.cls_norm_layers[0].bias.equal(bias)
    assert norm.cls_norm_layers[0].eps == 1e-5
    assert norm.cls_norm_layers[0].weight.data_ptr() != kept.weight.data_ptr()


def test_frozen_norms_stay_frozen():
    norm = separate_norms(encoder_layer().requires_grad_(False)).norm1
    assert not any(parameter.requires_grad for parameter in norm.parameters())


# Choosing


def test_a_copy_leaves_the_model_as_it_was():
    model = encoder()
    changed = separate_norms(model, inplace=False)
    assert changed is not model
    assert separate_modules(model) == []
    assert len(separate_modules(changed)) == 4
    assert separate_norms(model) is model


def test_names_and_a_predicate_choose_among_the_norms():
    model = separate_norms(encoder(), only=r"layers\.1", where=lambda name, norm: name.endswith("2"))
    assert model.separated_norms.replaced == ("layers.1.norm2",)
    assert model.separated_norms.skipped == {
        "layers.0.norm1": r"only is 'layers\\.1'",
        "layers.0.norm2": r"only is 'layers\\.1'",
        "layers.1.norm1": "where is False",
    }


def test_unknown_norms_are_replaced_if_the_caller_says_so():
    model = nn.ModuleDict({"tokens": nn.LayerNorm(WIDTH), "pooled": nn.LayerNorm(WIDTH)})
    x = torch.randn(5, 4, WIDTH)
    model = separate_norms(model, also="^tokens$", batch_first=False)
    assert model.separated_norms.replaced == ("tokens",)
    torch.testing.assert_close(model["tokens"](x)[0].mean(dim=0), torch.zeros(WIDTH), atol=1e-5, rtol=0)


# What is left alone


def refusal(model: nn.Module, **options) -> str:
    before = model.state_dict().keys()
    with pytest.raises(InputError) as error:
        separate_norms(model, **options)
    assert model.state_dict().keys() == before
    return str(error.value)


class CustomLayer(nn.TransformerEncoderLayer):
    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        return self.norm1(src.mean(dim=1))


def test_a_layer_with_a_forward_of_its_own_is_left_alone():
    assert "CustomLayer overrides forward" in refusal(CustomLayer(WIDTH, 2))


@pytest.mark.parametrize("name", ["only", "also"])
def test_a_pattern_that_is_no_regular_expression_is_refused(name):
    assert f"{name}='('" in refusal(nn.TransformerEncoderLayer(WIDTH, 2), **{name: "("})


def test_norms_over_other_axes_are_left_alone_even_if_the_caller_names_them():
    model = nn.Sequential(nn.BatchNorm1d(4), nn.GroupNorm(2, 4), nn.LayerNorm((3, 4)))
    assert refusal(model, also=".").count("does not normalize only the last axis") == 3


def test_one_norm_in_several_layers_is_left_alone():
    model = encoder()
    model.layers[1].norm1 = model.layers[0].norm1
    model = separate_norms(model)
    assert model.separated_norms.replaced == ("layers.0.norm2", "layers.1.norm2")
    assert set(model.separated_norms.skipped.values()) == {"one norm in several layers"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cls_norm": "layer"}, "cls_norm must be a function that creates a norm from the width, got 'layer'"),
        ({"tok_norm": nn.GroupNorm}, "from the width only, use functools.partial for the rest: GroupNorm.__init__"),
        ({"cls_positions": (-1, 0)}, "increasing"),
        ({"only": "no such name"}, "no norm of TransformerEncoder was replaced"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(options, problem):
    assert problem in refusal(encoder(), **options)


def test_timm_leaves_norms_of_heads_and_of_pooled_vectors_alone():
    model = separate_norms(timm_vit(qk_norm=True, global_pool="avg"))
    assert model.separated_norms.replaced == tuple(f"blocks.{b}.norm{i}" for b in (0, 1) for i in (1, 2))
    left = [f"blocks.{block}.attn.{name}" for block in (0, 1) for name in ("q_norm", "k_norm")]
    assert list(model.separated_norms.skipped) == [*left, "fc_norm"]


def test_timm_with_further_special_tokens_is_left_alone_without_positions():
    assert "2 special tokens in front" in refusal(timm_vit("deit_tiny_distilled_patch16_224"))
    registers = partial(timm_vit, reg_tokens=4)
    assert "5 special tokens in front" in refusal(registers())
    assert separate_norms(registers(), cls_positions=0).blocks[0].norm1.positions == (0,)


def test_timm_blocks_with_unknown_cls_are_left_alone_without_positions():
    """No CLS in front, two special tokens in one parameter, and a class that assembles its tokens itself."""
    Block = timm_block("Block")

    class OwnTokens(type(timm_vit())):
        def forward_features(self, x: Tensor) -> Tensor:
            return self.norm(self.blocks(self.patch_embed(x)))

    def two_tokens() -> nn.Module:
        model = nn.Sequential(Block(WIDTH, 2))
        model.cls_token = nn.Parameter(torch.zeros(1, 2, WIDTH))
        return model

    assert "has a single cls_token" in refusal(nn.Sequential(Block(WIDTH, 2)))
    assert "has a single cls_token" in refusal(two_tokens())
    own = OwnTokens(img_size=32, embed_dim=WIDTH, depth=1, num_heads=2, num_classes=3)
    assert "assembles its tokens itself" in refusal(own)
    assert separate_norms(two_tokens(), cls_positions=(0, 1))[0].norm1.positions == (0, 1)


# Graphormer


def test_share_norm_becomes_sep_norm_with_the_learned_parameters():
    model = nn.ModuleDict({"norm": ShareNorm(WIDTH)})
    trained(model)
    x = torch.randn(7, WIDTH)
    before = model["norm"].packed(x, 3)
    assert type(separate_norms(model, nn.LayerNorm)["norm"]) is SepNorm
    torch.testing.assert_close(model["norm"].packed(x, 3), before, atol=1e-6, rtol=0)


def test_share_norm_with_batch_statistics_keeps_them():
    model = nn.ModuleDict({"norm": ShareNorm(WIDTH, nn.BatchNorm1d)})
    model["norm"].packed(torch.randn(7, WIDTH), 3)
    x = torch.randn(7, WIDTH)
    before = model.eval()["norm"].packed(x, 3)
    torch.testing.assert_close(separate_norms(model)["norm"].packed(x, 3), before, atol=1e-6, rtol=0)


# the pages


def snippets() -> list[str]:
    """Python blocks that separate the norms of another transformer, or use it then."""
    found = [block for page in PAGES for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)]
    return [block for block in found if re.search("separate_norms|reestimate_batch_norm", block)]


@pytest.mark.skipif(not PAGES[0].exists(), reason="no docs beside the tests")
def test_snippets_of_the_pages_run(tmp_path, monkeypatch):
    pytest.importorskip("timm")
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)  # some of them write files
    assert len(snippets()) >= 4
    names: dict = {}
    for snippet in snippets():
        exec(compile(snippet, "snippet", "exec"), names)
