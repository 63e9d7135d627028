"""The explorer: a medical director explores the population alone, in a browser."""
