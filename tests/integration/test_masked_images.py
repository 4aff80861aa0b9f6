import json

import pytest
import torch

from tests.examples import load_example, run_example

pytest.importorskip("transformers")
TINY = ("--epochs", "1", "--fine-tuning-epochs", "1", "--width", "8", "--layers", "1", "--seeds", "1")


@pytest.fixture(scope="module")
def example():
    return load_example("masked_images")


def test_the_parts_of_the_digits_share_no_image_and_have_all_classes(example):
    images = example.digits()
    assert [len(part.classes) for part in images.values()] == [1077, 360, 360]
    assert all(part.classes.unique().tolist() == list(range(10)) for part in images.values())
    x = images["train"].batch(torch.arange(100))
    assert x.shape == (100, 1, 8, 8)
    assert (x.min(), x.max()) == (-1, 1)


def test_the_cls_has_norms_of_its_own_where_it_differs(example):
    model = example.make_model("SepNorm", example.digits()["train"], patch=2, width=8, layers=2)
    replaced = model.separated_norms.replaced
    kinds = [name.rpartition(".")[2] for name in replaced]
    assert kinds == ["layernorm_after", "layernorm_before", "layernorm_after", "layernorm"]
    assert not any("decoder" in name for name in replaced)


@pytest.mark.slow
def test_a_tiny_run_from_the_command_line(tmp_path):
    done = run_example("masked_images", *TINY, "--out", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [row["norm"] for row in rows] == ["ShareNorm", "SepNorm", "LayerNorm on the CLS"]
    for row in rows:
        assert 0.03 < row["probe, top-1"] < row["probe, top-5"] < 1
        assert 0 < row["fine-tuned, top-1"] < row["fine-tuned, top-5"] <= 1
    assert (tmp_path / "results.png").stat().st_size > 10_000
    assert "| ViT | SepNorm | 1 |" in done.stdout
