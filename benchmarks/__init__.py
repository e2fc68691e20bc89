"""Figures beside a peer or a limit, in one run: ``make bench``."""
