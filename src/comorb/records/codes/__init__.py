"""Coding systems: what a code looks like, what it means, and what it becomes."""
