"""From clusters to meaning: profiles, charts, reports and comparisons."""
