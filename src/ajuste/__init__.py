"""Ajuste: an experiment lab for Linux configuration."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())  # what happens is no output (see ajuste.cli.log)
