"""Views: what shows a profile. They read it and compute nothing of their own."""
