"""Replay a training trace on hardware you do not have yet."""

__version__ = "0.1.0"
