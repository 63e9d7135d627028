"""Records read by the workers of an engine."""
