"""System: files, threads, worker processes, distributed training, devices and signals.

Nothing here depends on molecules or models.
"""
