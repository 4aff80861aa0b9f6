import math

import pytest
import torch

from graphormer_sepnorm.explain import analyze
from graphormer_sepnorm.explain.analyze import analyze_run
from graphormer_sepnorm.explain.cls_geometry import alignment, effective_rank, isotropy, singular_values, uniformity
from tests.tiny import save_tiny

CROSS = torch.tensor([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


def test_alignment_is_mean_squared_distance_of_directions():
    x = torch.tensor([[1.0, 0.0], [0.0, 5.0]])
    y = torch.tensor([[0.0, 3.0], [0.0, 2.0]])
    assert alignment(x, y) == pytest.approx(1.0)  # 2 and 0
    assert alignment(x, y, alpha=1) == pytest.approx(math.sqrt(2) / 2)


def test_uniformity_of_three_directions():
    x = torch.tensor([[1.0, 0.0], [-7.0, 0.0], [0.0, 2.0]])
    potentials = math.exp(-8), math.exp(-4), math.exp(-4)  # squared distances 4, 2, 2
    assert uniformity(x) == pytest.approx(math.log(sum(potentials) / 3))
    assert uniformity(x, t=1) == pytest.approx(math.log((math.exp(-4) + 2 * math.exp(-2)) / 3))


def test_singular_values_are_standard_deviations_along_axes():
    shifted = CROSS + torch.tensor([10.0, -3.0])
    torch.testing.assert_close(singular_values(shifted), torch.tensor([2.0, 0.5]).double().sqrt())


def test_effective_rank_of_equal_and_unequal_directions():
    square = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert effective_rank(square) == pytest.approx(2.0)
    entropy = -(2 / 3) * math.log(2 / 3) - (1 / 3) * math.log(1 / 3)  # singular values 2 : 1
    assert effective_rank(CROSS) == pytest.approx(math.exp(entropy))


def test_effective_rank_of_a_line_is_one_and_of_a_point_is_zero():
    assert effective_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0], [4.0, 8.0]])) == pytest.approx(1.0)
    assert effective_rank(torch.full((7, 3), 0.1)) == 0.0


def test_isotropy_compares_partition_functions_of_the_principal_axes():
    assert isotropy(CROSS) == pytest.approx((2 + 2 * math.cosh(1)) / (2 + 2 * math.cosh(2)))


@pytest.mark.parametrize("measure", [uniformity, singular_values, effective_rank, isotropy])
@pytest.mark.parametrize("shape", [(1, 4), (3,), (2, 3, 4)])
def test_embeddings_of_another_shape_are_refused(measure, shape):
    with pytest.raises(ValueError, match="shape"):
        measure(torch.ones(shape))


@pytest.mark.slow
def test_of_many_molecules_the_same_are_drawn_every_time(tmp_path, monkeypatch):
    monkeypatch.setattr(analyze, "MAX_MOLECULES", 50)
    run = save_tiny(tmp_path, featurizer="zinc")
    first = analyze_run(run, "val")
    assert (first["dataset"], first["split"], first["molecules"]) == ("sample", "val", 50)
    assert first == analyze_run(run, "val")
