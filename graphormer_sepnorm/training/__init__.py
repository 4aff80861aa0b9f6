"""Training: the loop, its schedule and optimizers, resuming, fine-tuning, pretraining, whole experiments and sweeps.

To add an optimizer, write a function and add a line to ``optimizers.OPTIMIZERS``. To add a schedule, add a branch in
``schedule``.
"""
