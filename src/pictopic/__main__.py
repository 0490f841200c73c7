"""``python -m pictopic``."""

from pictopic.cli import main

main()
