"""More than one machine, by way of Ray: building corpora and training networks with the code that one machine runs.

Requirements: pictopic is installed on every machine, and pictures, corpora and the folder of checkpoints have the same
path (or URL) on all of them.  Everything else goes through Ray.
"""
