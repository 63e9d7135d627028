"""Torture: the long attacks on what is promised, made from the lists that the program itself uses.

``make torture`` makes all of them; ``python -m torture kills bits`` some, and ``--share 0.01`` a
hundredth of their counts, which is what `tests/test_torture.py` does.
"""
