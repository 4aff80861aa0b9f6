"""Training: the loop, its schedule and optimizers, resuming, fine-tuning, pre-training, whole experiments and sweeps.

A new optimizer is a function and a line in ``optimizers.OPTIMIZERS``, a new schedule a branch in ``schedule``.
"""
