"""System: what the operating system and several processes ask for: files, threads, workers, torchrun, signals.

Nothing here knows molecules or models; a new such thing is a file of its own.
"""
