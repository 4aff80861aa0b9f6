"""Intervals, calibrated probabilities and the domain: by hand, by what they promise, and as a file."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom
from sklearn.metrics import log_loss, roc_auc_score

from graphormer_sepnorm.chem.fingerprints import morgan_bits, packed, unpacked
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference import trust
from graphormer_sepnorm.inference.trust import (
    Calibration,
    Domain,
    Intervals,
    Trust,
    brier_score,
    calibration_error,
    coverage,
    fit_calibration,
    fit_domain,
    fit_intervals,
    load_trust,
    save_trust,
    spread_of_models,
)
from graphormer_sepnorm.runs.arrays import load_arrays, save_arrays

SMILES = ["CCO", "CCN", "c1ccccc1C(=O)[O-]", "CC(=O)Oc1ccccc1C(=O)O"]


@pytest.fixture(scope="module")
def domain() -> Domain:
    return fit_domain(SMILES, np.array([[0.0, 0], [3, 4], [6, 8], [0, 1]]))


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


def test_half_widths_by_hand():
    """Errors of 1 to 9: of 10 places, the new molecule's is at most the 9th with probability 0.9."""
    found = fit_intervals(column(3, -1, 2, -4, 9, 8, -7, 6, 5), column(*[0] * 9), column(*[0] * 9))
    half_widths = {0.9: 9, 0.89: 9, 0.8: 8, 0.5: 5, 0.51: 6, 0.1: 1, 1e-12: 1}
    for confidence, expected in half_widths.items():
        assert found.half_widths(confidence, column(0, 0)).tolist() == [[expected], [expected]]


@pytest.mark.parametrize("confidence", [0.0, 1.0, 0.91, 90.0, -1.0, np.nan])
def test_confidences_that_cannot_be(confidence):
    found = fit_intervals(column(*range(9)), column(*[0] * 9), column(*[0] * 9))
    with pytest.raises(InputError, match="of at most 0.9" if confidence == 0.91 else "between 0 and 1"):
        found.half_widths(confidence, column(0))


def test_intervals_are_wider_where_models_disagree():
    """Errors 1, 2, 6 at spreads 1, 0, 2, whose mean is 1, are scores 1/2, 2, 2."""
    found = fit_intervals(column(1, 2, 6), column(0, 0, 0), column(1, 0, 2))
    assert found.scores.tolist() == [[0.5], [2], [2]] and found.offset.tolist() == [1]
    assert found.half_widths(0.5, column(0, 1, 3, np.nan)).tolist()[:3] == [[2], [4], [8]]
    assert np.isnan(found.half_widths(0.5, column(np.nan))).all()
    assert np.isnan(fit_intervals(column(1), column(0), column(0)).half_widths(0.5, column(np.nan))).all()


def test_the_spread_of_models_is_theirs_however_small_it_is():
    by_model = np.array([[[1e-25]], [[3e-25]]], np.float32)
    assert spread_of_models(by_model)[0, 0] == pytest.approx(1e-25, rel=1e-6, abs=0)


def test_missing_labels_are_not_counted():
    y = np.array([[1.0, np.nan], [2, 5], [3, 7], [4, np.nan]])
    found = fit_intervals(y, np.zeros((4, 2)), np.zeros((4, 2)))
    assert found.half_widths(0.6, np.zeros((1, 2))).tolist() == [[3, 7]]
    with pytest.raises(InputError, match="the 2 that this model"):
        found.half_widths(0.7, np.zeros((1, 2)))
    with pytest.raises(InputError, match="no labels"):
        fit_intervals(y[[0, 3]], np.zeros((2, 2)), np.zeros((2, 2)))


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("confidence", [0.51, 0.83, 0.93])
def test_what_is_promised_holds_on_average(confidence, spread):
    """2,000 times, one new molecule after 39 of calibration with errors of heavy tails: a binomial count."""
    random, inside = np.random.default_rng(0), 0
    for _ in range(2000):
        disagreement = spread * random.exponential(size=(40, 1))
        y = random.standard_t(2, (40, 1)) * (1 + disagreement)
        found = fit_intervals(y[:39], np.zeros((39, 1)), disagreement[:39])
        inside += int(np.abs(y[39, 0]) <= found.half_widths(confidence, disagreement[39:])[0, 0])
    promised = np.ceil(40 * confidence) / 40
    least, most = binom.interval(0.9999, 2000, promised)
    assert least <= inside <= most


def test_coverage_by_hand():
    y = np.array([[1.0, np.nan, np.nan], [2, 2, np.nan], [3, np.nan, np.nan]])
    found = coverage(y, np.zeros((3, 3)), np.array([[1.0, 0, 0], [1, 3, 0], [3, 9, 0]]))
    np.testing.assert_array_equal(found, [2 / 3, 1, np.nan])


def overconfident(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and probabilities whose logits are three times too large and one too high."""
    random = np.random.default_rng(seed)
    true = random.normal(size=(count, 1))
    return (random.random((count, 1)) < expit(true)).astype(float), expit(3 * true + 1)


def test_probabilities_are_stretched_and_shifted_back():
    y, probability = overconfident(20_000, 0)
    found = fit_calibration(y, probability)
    assert found.slope[0] == pytest.approx(1 / 3, abs=0.02)
    assert found.intercept[0] == pytest.approx(-1 / 3, abs=0.04)
    y, probability = overconfident(2_000, 1)
    assert log_loss(y[:, 0], found(probability)[:, 0]) < log_loss(y[:, 0], probability[:, 0]) - 0.1
    assert roc_auc_score(y[:, 0], found(probability)[:, 0]) == roc_auc_score(y[:, 0], probability[:, 0])


def test_reliability_after_calibration():
    found = fit_calibration(*overconfident(5_000, 2))
    y, probability = overconfident(20_000, 3)
    calibrated = found(probability)
    for low in np.arange(0.1, 0.9, 0.1):
        inside = (calibrated >= low) & (calibrated < low + 0.1)
        assert y[inside].mean() == pytest.approx(calibrated[inside].mean(), abs=0.05)


def test_calibration_error_and_brier_score_by_hand():
    """Two bins: one with 0.1 and 0.15 of which one is of class 1, one with 0.9 and 1.0, both of class 1."""
    y = np.array([[1.0, np.nan], [0, np.nan], [1, np.nan], [1, np.nan], [np.nan, np.nan]])
    probability = np.tile(column(0.1, 0.15, 0.9, 1.0, 0.5), 2)
    np.testing.assert_allclose(calibration_error(y, probability), [(0.75 + 0.1) / 4, np.nan])
    np.testing.assert_allclose(brier_score(y, probability), [(0.81 + 0.0225 + 0.01 + 0) / 4, np.nan])


def test_classes_that_are_parted_perfectly_do_not_become_certain():
    found = fit_calibration(column(0, 0, 1, 1), column(0.0, 0.1, 0.9, 1.0))
    calibrated = found(column(0.0, 0.5, 1.0))[:, 0]
    assert 0.01 < calibrated[0] < 0.3 and calibrated[1] == pytest.approx(0.5) and 0.7 < calibrated[2] < 0.99


@pytest.mark.parametrize(
    "y", [column(1, 1, 1), column(0, 0, 0), column(1, 0, 0), column(np.nan, np.nan, np.nan)], ids=str
)
def test_targets_that_cannot_be_calibrated_stay_as_they_are(y):
    """Of one class, ranked the wrong way round, without labels."""
    found = fit_calibration(y, column(0.1, 0.5, 0.9))
    assert (found.slope.tolist(), found.intercept.tolist()) == ([1], [0])
    np.testing.assert_allclose(found(column(0.25)), column(0.25))


def test_similarity_by_hand(domain):
    """Of CCO, with 6 environments, CCCO has 4 of its 9: see the overlap of the two sets of bits."""
    ours, theirs = (set(morgan_bits(read_smiles(text)).GetOnBits()) for text in ("CCCO", "CCO"))
    smiles = ["CCCO", "OCC", "C[C", None, "OC(=O)c1ccccc1OC(C)=O"]
    found, nearest = domain.nearest(smiles)
    assert found[0] == pytest.approx(len(ours & theirs) / len(ours | theirs))
    assert found[1] == found[4] == 1
    assert np.isnan(found[2:4]).all()
    assert nearest[:4] == ["CCO", "CCO", "", ""] and nearest[4] in SMILES
    assert domain.warnings(smiles) == ["", "", "", "", ""]


def test_fingerprints_as_bytes_come_back():
    for text in SMILES:
        bits = morgan_bits(read_smiles(text))
        assert unpacked(packed(bits)) == bits


@pytest.mark.parametrize(
    ("smiles", "warning"),
    [
        ("[Na+]", "Na was never seen; heavy atoms: 1, seen 3 to 13; charge: +1, seen -1 to +0"),
        ("CC[Pt](Cl)Cl", "Cl was never seen; Pt was never seen"),
        ("C" * 335, "heavy atoms: 335, seen 3 to 13"),
        ("CCC[NH3+]", "N of charge +1 was never seen; charge: +1, seen -1 to +0"),
        ("[O-]C(=O)CC(=O)[O-]", "charge: -2, seen -1 to +0"),
        ("CCCO", ""),
        ("CCO.OCC.OC(=O)C", "parts that are not bonded: CC(=O)O and CCO"),
    ],
)
def test_what_was_never_seen_is_warned_of(domain, smiles, warning):
    assert domain.warnings([smiles]) == [warning]


def test_a_model_that_learnt_from_salts_does_not_warn_of_parts():
    domain = fit_domain(["CCO", "CC(=O)[O-].[Na+]", "CCCCCC"])
    assert domain.warnings(["CCO.CCO"]) == [""]


def test_no_training_molecule_is_strange():
    smiles = sample_table().smiles.tolist()[:100]
    found = fit_domain(smiles)
    assert set(found.warnings(smiles)) == {""} and (found.nearest(smiles)[0] == 1).all()


def test_distances_by_hand(domain):
    found = domain.distance(np.array([[3.0, 0], [6, 8], [np.nan, 1], [1, -1]]))
    np.testing.assert_allclose(found, [3, 0, np.nan, 2**0.5], atol=1e-6)
    with pytest.raises(InputError, match="no embeddings"):
        fit_domain(SMILES).distance(np.zeros((1, 2)))


def test_of_many_training_molecules_some_are_kept_and_all_are_looked_at(monkeypatch):
    monkeypatch.setattr(trust, "MAX_REFERENCES", 2)
    found = fit_domain(["CCO", "CCBr", "CCCC"], np.arange(3.0)[:, None])
    assert found.bits.shape == (2, 256) and found.embeddings.tolist() == [[0], [2]]
    assert found.warnings(["CBr", "CC(Br)C"]) == ["heavy atoms: 2, seen 3 to 4", ""]


def test_training_molecules_must_be_there():
    with pytest.raises(InputError, match="no training molecules"):
        fit_domain([])


def test_trust_fits_models_of_its_shape_alone(domain):
    intervals, calibration = Intervals(np.ones((2, 3)), np.zeros(3)), Calibration(np.ones(3), np.zeros(3))
    for trust_of_three in (Trust(domain, intervals), Trust(domain, calibration=calibration)):
        assert trust_of_three.fits(3, 2) and not trust_of_three.fits(2, 2) and not trust_of_three.fits(3, 16)
    assert Trust(fit_domain(SMILES)).fits(5, 16)


@pytest.fixture(params=["intervals", "calibration", "neither"])
def kept(request, domain) -> Trust:
    intervals = Intervals(np.array([[1.0, 2], [2, np.nan]]), np.array([0.0, 1]))
    calibration = Calibration(np.array([2.0]), np.array([-1.0]))
    return {
        "intervals": Trust(domain, intervals=intervals),
        "calibration": Trust(domain, calibration=calibration),
        "neither": Trust(fit_domain(SMILES)),
    }[request.param]


def test_what_is_kept_comes_back(kept, tmp_path):
    path = tmp_path / "trust.safetensors"
    save_trust(path, kept)
    found = load_trust(path)
    for name in ("domain", "intervals", "calibration"):
        ours, theirs = getattr(kept, name), getattr(found, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            for key, values in vars(ours).items():
                np.testing.assert_array_equal(values, getattr(theirs, key))
    assert found.domain.nearest(["CCCO"]) == kept.domain.nearest(["CCCO"])
    before = path.read_bytes()
    save_trust(path, found)
    assert path.read_bytes() == before


def test_a_damaged_file_is_refused(kept, tmp_path):
    path = tmp_path / "trust.safetensors"
    save_trust(path, kept)
    whole, random = path.read_bytes(), np.random.default_rng(0)
    for place in random.integers(0, len(whole), 50):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(random.integers(8))
        path.write_bytes(changed)
        with pytest.raises(InputError):
            load_trust(path)


def test_a_file_without_the_molecules_themselves_still_says_how_similar_they_are(domain, tmp_path):
    path = tmp_path / "trust.safetensors"
    save_trust(path, Trust(domain))
    arrays, facts = load_arrays(path)
    del arrays["domain.text"]
    save_arrays(path, arrays, facts)
    similarity, nearest = load_trust(path).domain.nearest(["OCC"])
    assert similarity.tolist() == [1] and nearest == [""]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("domain.bits", np.zeros((4, 255), np.uint8)),
        ("domain.bits", np.zeros((0, 256), np.uint8)),
        ("domain.bits", np.zeros((4, 256), np.float32)),
        ("domain.kinds", np.zeros((4, 3), np.int64)),
        ("domain.atoms", np.zeros(3, np.int64)),
        ("domain.embeddings", np.zeros((3, 2), np.float32)),
        ("domain.text", np.frombuffer(b"CCO\nCCN", np.uint8)),
        ("domain.text", np.zeros(3, np.int64)),
        ("intervals.offset", np.zeros(3)),
        ("intervals.scores", np.zeros((0, 2))),
    ],
)
def test_arrays_that_do_not_fit_are_refused(domain, tmp_path, name, values):
    path = tmp_path / "trust.safetensors"
    save_trust(path, Trust(domain, intervals=Intervals(np.ones((2, 2)), np.zeros(2))))
    arrays, facts = load_arrays(path)
    save_arrays(path, {**arrays, name: values}, facts)
    with pytest.raises(InputError, match=r"damaged|is not what it should be"):
        load_trust(path)


def test_a_name_behind_a_training_molecule_may_have_any_bytes():
    domain = fit_domain(["CCO caf\udce9", "CC"])
    assert domain.nearest(["CCO"])[0].tolist() == [1.0]
