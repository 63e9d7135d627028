"""Layouts: how records lie in a table, and one reader for each way."""
