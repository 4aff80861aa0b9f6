"""Training: the loop, its schedule and optimizers, resuming, fine-tuning, pretraining, experiments and sweeps."""
