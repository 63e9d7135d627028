"""Views: what shows a profile. They read it and compute nothing of their own."""

from __future__ import annotations

# The charts of a whole profile, those of the page's sections (page/sections.js): the PDF prints
# each, the first with its summary, and the explorer offers each as a file.
CHARTS = ("burden", "sizes", "frequency", "heatmap")
