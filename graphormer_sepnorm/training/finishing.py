"""The end of a training on a table: the run folder as a whole is scored, and how far to trust it is kept."""

from dataclasses import replace

import numpy as np

from graphormer_sepnorm.inference.predict import calibrated
from graphormer_sepnorm.inference.trust import save_trust
from graphormer_sepnorm.runs.folder import RunFolder, member_paths
from graphormer_sepnorm.training.experiment import Scores
from graphormer_sepnorm.training.table_report import write_report
from graphormer_sepnorm.training.trusting import fit_trust, load_first, look_at_test, measure, measure_distances


def finish_table(run: RunFolder, val: Scores, test: Scores, result: dict) -> dict:
    """Keeps how far the predictions of a run folder can be trusted, scores them on test, and reports.

    To be called when all models are there, and the forest if there is one.  Writes ``trust.safetensors``,
    ``test.json``, the pictures of predictions, calibration and distances, and ``report.html``.

    Args:
        run: of one model on a table, or of an ensemble.
        val, test: what its models predict, blended with its forest if there is one.
        result: what is known so far, such as the scores of a forest.

    Returns:
        ``result`` with the scores of what ``predict`` predicts; under ``network`` those of the networks alone, if a
        forest or a calibration takes part; under ``trust`` what was measured on test.

    Raises:
        InputError: a model or the table cannot be read, or the folder cannot be written.
    """
    first = load_first(member_paths(run.path)[0])
    trust = fit_trust(first, val)
    save_trust(run.trust, trust)
    final = test.of(calibrated(test.prediction, trust))
    plain = test.of(test.by_network.mean(axis=0))
    looked = look_at_test(first, trust.domain, final)
    result = {**result, **final.result, "trust": {"calibrated_on": len(val.y), **measure(run, trust, test, final)}}
    result["trust"] |= measure_distances(run, final.task, looked)
    if not np.array_equal(plain.prediction, final.prediction):
        result["network"] = plain.result["scores"]
    replace(final, result=result).write(run)
    write_report(run, result, final, looked)
    return result
