"""Everything that exists to reproduce the paper: its data sets, what it compares with, and its experiments."""
