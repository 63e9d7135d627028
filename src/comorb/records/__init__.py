"""Hospital files become cohorts: sources, layouts, codes, cohorts and built-in data."""
