"""Predictions against a fabric that is really made faster and slower: `python -m benchmarks.fabric_lab record DIR`, `... evaluate DIR`.

``record`` runs DLRMs on two hosts of the laboratory (``collect lab``) over links of several speeds, each in every round once, so
that what the machine does meanwhile falls on all of them. ``evaluate`` takes each recording as a base and predicts the step over
each other link, from the base's traces and the two links' rates alone, and prints what was measured there beside it.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.fabric_lab_pairs import Base, Pair, Point, pairs_of
from tracereplay.collectors.launch import CollectRequest, collect_dlrm
from tracereplay.collectors.link import Link, parse_link
from tracereplay.collectors.presets import preset_job
from tracereplay.errors import TracereplayError

ROUNDS: Final = 5


@dataclass(frozen=True, slots=True)
class Course:
    """A model and the links that it runs over; the slowest at least doubles its step."""

    preset: str
    batch: int
    warmup: int
    steps: int
    links: tuple[str, ...]


COURSES: Final = (
    Course("kaggle", 128, 5, 12, ("unshaped", "1gbit", "400mbit", "150mbit")),
    Course("mlperf-small", 512, 3, 6, ("unshaped", "2gbit", "500mbit", "150mbit")),
    Course("rm2", 128, 3, 6, ("unshaped", "200mbit", "60mbit", "25mbit")),
)
