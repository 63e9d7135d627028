"""The mathematics: arrays in, arrays out; no files, no frames, no printing."""
