"""The last section of a report: the terms that occur in it, for readers who have only the report."""

import re
from collections.abc import Sequence

from graphormer_sepnorm.report.page import Card, Grid, Section
from graphormer_sepnorm.tasks import METRICS

TERMS = {
    "MAE": "mean absolute error: the mean distance between predicted and measured values",
    "RMSE": "root mean square error: like the MAE, but large errors count more",
    "R2": "share of the variance of the measured values that is explained; 1 is perfect, 0 is as good as their mean",
    "Spearman": "rank correlation: 1 if the order of the molecules is right, 0 if it is random",
    "ROC-AUC": "probability that a positive is ranked above a negative; 1 is perfect, 0.5 is chance",
    "PR-AUC": "area under precision against recall; 1 is perfect, the share of positives is chance",
    "accuracy": "share of the molecules whose most probable class is the measured one",
    "log loss": "mean negative logarithm of the probability of the measured class; 0 is perfect",
    "Brier score": "mean squared difference between the probability and the label, 0 or 1; 0 is perfect",
    "calibration error": "mean difference between predicted probabilities and the observed share of positives",
    "sensitivity": "share of the positives that are predicted as positive",
    "specificity": "share of the negatives that are predicted as negative",
    "precision": "share of positives among the molecules that are predicted as positive",
    "90 % set": "the classes that cannot be ruled out at 90 % confidence",
    "concordance": "share of the pairs of labels, bounds among them, whose order is known and predicted; 0.5 is chance",
    "coverage": "share of the measured values that are inside their interval",
    "out of fold": "predicted by a model that was fitted without the fold of the molecule",
    "interval": "of a prediction: the range that contains the measured value with this confidence, such as 90 %; of a "
    "score: the range that is likely to contain the score on very many molecules of the same kind",
    "similarity": "Tanimoto similarity of Morgan fingerprints: 1 for the same fragments, 0 for no common fragment",
}


def glossary(cards: Sequence[Card], sections: Sequence[Section]) -> Section:
    """The terms that occur in the other parts of a report."""
    text = repr((cards, sections)).replace("out-of-fold", "out of fold")
    rows = tuple((term, meaning) for term, meaning in TERMS.items() if re.search(rf"(?i:\b{term}\b)", text))
    return Section("Glossary", grids=(Grid(("term", "meaning"), rows),))


def metric_words(metric: str) -> str:
    """The name of a metric for a card: an error in full, with its abbreviation."""
    title = METRICS[metric].title
    name, _, meaning = TERMS.get(title, "").partition(": ")
    return f"{name} ({title})" if "error" in name and meaning else title
