"""Sources: files, databases and frames, opened as tables that DuckDB reads."""
