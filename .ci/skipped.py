"""Print how many tests were skipped: in, JUnit files that pytest wrote; out, one line, and a line above it a test."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def skipped_tests(report: Path) -> list[str]:
    """The skipped tests of one JUnit file, each with its reason; expected failures are not among them."""
    cases = ET.parse(report).getroot().iter("testcase")
    return [
        f"{case.get('classname')}::{case.get('name')}: {skip.get('message')}"
        for case in cases
        if (skip := case.find("skipped")) is not None and skip.get("type") == "pytest.skip"
    ]


def main(reports: list[str]) -> None:
    """Print the skipped tests of all reports, then their number."""
    lines = [line for report in reports for line in skipped_tests(Path(report))]
    print("\n".join([*lines, f"skipped tests: {len(lines)}"]))


if __name__ == "__main__":
    main(sys.argv[1:])
