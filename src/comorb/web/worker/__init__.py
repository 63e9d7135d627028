"""The worker: a process that reads, fits and describes, one task after the other."""
