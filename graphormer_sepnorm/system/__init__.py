"""System: files, threads, worker processes, devices and signals; nothing depends on molecules or models."""
