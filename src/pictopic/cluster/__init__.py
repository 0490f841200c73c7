"""More than one machine, by way of Ray: building corpora and training networks with the code that one machine runs.

What is assumed: pictopic is installed on every machine; pictures and corpora are there under the same path (or URL) on
all of them, and so is the folder of checkpoints.  Everything else goes through Ray.
"""
