"""System: files, worker processes, distributed processes and signals."""
