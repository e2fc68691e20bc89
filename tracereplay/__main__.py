"""Run the command line with ``python -m tracereplay``."""

from tracereplay.cli.main import run

run()
