"""Mutations of losses, scales and metrics."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(
    "tasks.py",
    "unit/test_tasks.py",
    (
        "return value > best if self.higher_is_better else value < best",
        "return value < best if self.higher_is_better else value > best",
    ),
    ("return value > best if self.higher_is_better", "return value >= best if self.higher_is_better"),
    ("return float(np.mean(scores))", "return float(scores[0])"),
    ("labelled = ~np.isnan(y)\n        if", "labelled = np.ones(len(y), bool)\n        if"),
    ("np.sqrt(np.mean((y - prediction) ** 2))", "np.mean((y - prediction) ** 2)"),
    ("metrics.r2_score(y, prediction)", "metrics.r2_score(prediction, y)"),
    ("metrics.average_precision_score(y, prediction)", "metrics.roc_auc_score(y, prediction)"),
    ("(prediction > 0.5) == (y > 0.5)", "(prediction > 0) == (y > 0)"),
    ("Metric(mean_absolute_error, higher_is_better=False)", "Metric(mean_absolute_error, higher_is_better=True)"),
    (
        "Metric(root_mean_squared_error, higher_is_better=False)",
        "Metric(root_mean_squared_error, higher_is_better=True)",
    ),
    ("Metric(log_loss, higher_is_better=False)", "Metric(log_loss, higher_is_better=True)"),
    ("Metric(pr_auc, higher_is_better=True)", "Metric(pr_auc, higher_is_better=False)"),
    ("Metric(accuracy, higher_is_better=True)", "Metric(accuracy, higher_is_better=False)"),
    ("std = np.nanstd(y, axis=0)", "std = np.nanstd(y)"),
    ("np.nanmean(y, axis=0).tolist()", "np.nanmedian(y, axis=0).tolist()"),
    ("np.where(std > 0, std, 1.0)", "std"),
    (
        "np.where(both, negatives / np.maximum(positives, 1), 1.0)",
        "np.where(both, positives / np.maximum(negatives, 1), 1.0)",
    ),
    ("positive_weights(y) if task.balance else ()", "positive_weights(y)"),
    (
        "(self.losses(output, y, bounds) * counts).sum() / total.masked_fill(total == 0, 1)",
        "self.losses(output, y, bounds).mean()",
    ),
    ("total = counts.sum()", "total = y.new_tensor(y.numel())"),
    (
        "(y - self.mean.to(y)) / self.std.to(y)",
        "(y - self.mean.to(y)) * self.std.to(y)",
    ),
    ("return output.sigmoid()", "return output"),
    ("+ self.mean.to(output)", "- self.mean.to(output)"),
    ("pos_weight=weight, reduction", "weight=weight, reduction"),
    ('LOSSES = {"l1": l1_loss, "mse": mse_loss}', 'LOSSES = {"l1": mse_loss, "mse": l1_loss}'),
    ('REPORTED = {\n    "regression": ("mae", "rmse", "r2")', 'REPORTED = {\n    "regression": ("mae", "rmse")'),
    ("if np.all(lowest == highest):", "if np.any(lowest == highest):"),
    (".max() > LARGEST_TARGET:", ".min() > LARGEST_TARGET:"),
    ("column[~np.isnan(column)], (0, 1))", "column[~np.isnan(column)], (0, 1, 2))"),
    ("if len(infinite):", "if len(infinite) > 1:"),
)
