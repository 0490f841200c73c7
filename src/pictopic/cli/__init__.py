"""The commands.  They hold no logic: what they print comes from the package."""

from pictopic.cli import corpus, demo, fit, model, pretrain, reproduce, serve
from pictopic.cli.application import app, main

__all__ = ["app", "corpus", "demo", "fit", "main", "model", "pretrain", "reproduce", "serve"]  # the commands join `app`
