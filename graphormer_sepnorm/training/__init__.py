"""Training: the loop, its schedule and optimizers, resuming, fine-tuning, whole experiments."""
