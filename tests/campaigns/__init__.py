"""Attacks on what the program promises, in numbers: crashes, kills, damaged models, hostile files, rounds, a soak.

`make campaign` runs them at full size, the tests marked slow at a small one; docs/robustness.md explains each.
"""
