import numpy as np
import pytest
import torch

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.predictors import Embedder, Predictor, compute_chunks, load_networks
from graphormer_sepnorm.system import workers
from graphormer_sepnorm.system.workers import CHUNK, in_chunks
from tests.molecules import ODDITIES, REFUSED_BY_STRICT_RDKIT, UNREADABLE
from tests.tiny import save_tiny, tiny_model


@pytest.fixture(scope="module")
def tiny():
    return tiny_model()


def predict_all(model, config, smiles, size: int = CHUNK) -> tuple[np.ndarray, list[str]]:
    """Predictions [M, tasks] of one model and M errors, as a table gets them."""
    predictor = Predictor([(model, config)])
    parts = [part for _, part in compute_chunks(predictor, in_chunks(smiles, size), list)]
    values = [np.empty((0, len(predictor.targets)), np.float32), *(part.values for part in parts)]
    return np.concatenate(values), [error for part in parts for error in part.errors]


def test_readable_rows_do_not_depend_on_unreadable_neighbours(tiny):
    good = list(ODDITIES.values()) + REFUSED_BY_STRICT_RDKIT
    mixed = [text for pair in zip(good, [*UNREADABLE] * 4, strict=False) for text in pair]
    alone, no_errors = predict_all(*tiny, good)
    values, errors = predict_all(*tiny, mixed)
    assert not any(no_errors) and np.isfinite(alone).all()
    np.testing.assert_allclose(values[::2], alone, rtol=1e-4, atol=1e-5)
    assert np.isnan(values[1::2]).all() and all(errors[1::2]) and not any(errors[::2])


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes(tiny, monkeypatch):
    smiles = [*sample_table().smiles[:195], *UNREADABLE]
    in_workers = {}
    for cores in (1, 2):
        monkeypatch.setattr(workers, "available_cores", lambda cores=cores: cores)
        in_workers[cores] = predict_all(*tiny, smiles, size=50)
    by_chunk = [predict_all(*tiny, chunk) for chunk in in_chunks(smiles, 50)]
    for values, errors in in_workers.values():
        assert np.array_equal(values, np.concatenate([part for part, _ in by_chunk]), equal_nan=True)
        assert errors == [error for _, part in by_chunk for error in part]


def test_an_ensemble_gives_mean_and_spread():
    models = [tiny_model(seed=seed) for seed in range(3)]
    molecules = read_molecules("ogb", ["CCO", "?", "c1ccccc1"])
    each = np.stack([Predictor([model]).compute(molecules).values for model in models])
    together = Predictor(models).compute(molecules)
    np.testing.assert_allclose(together.values, each.mean(axis=0))
    np.testing.assert_allclose(together.spread, each.std(axis=0))
    assert np.isnan(together.values[1]).all() and together.spread[0] > 0


def test_models_of_different_targets_are_not_averaged():
    with pytest.raises(InputError, match=r"differ in targets or features: .*\blogp\b.*\btox\b"):
        Predictor([tiny_model(), tiny_model(targets=("tox",))])
    with pytest.raises(InputError, match=r"ogb.*zinc"):
        Predictor([tiny_model(), tiny_model("zinc")])


def test_several_models_are_loaded_in_order(tmp_path):
    predictor = Predictor(load_networks([save_tiny(tmp_path / f"{seed}", seed=seed) for seed in (10, 2)]))
    for (model, _), seed in zip(predictor.models, (10, 2), strict=True):
        assert torch.equal(model.cls, tiny_model(seed=seed)[0].cls)
    with pytest.raises(InputError, match="no file or folder"):
        load_networks([str(tmp_path / "missing")])


def test_embeddings_are_those_of_the_cls(tiny):
    model, config = tiny
    embeddings = Embedder(model, config).compute(read_molecules("ogb", ["CCO", "", "CCN"]))
    assert embeddings.values.shape == (3, 16)
    assert np.isnan(embeddings.values[1]).all() and "empty" in embeddings.errors[1]
    with torch.inference_mode():
        outputs = model.head(torch.from_numpy(embeddings.values[[0, 2]])).numpy()
    np.testing.assert_allclose(outputs, predict_all(model, config, ["CCO", "CCN"])[0], rtol=1e-4, atol=1e-5)
