import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

REPORT = """<testsuites><testsuite>
<testcase classname="tests.a" name="test_runs"/>
<testcase classname="tests.a" name="test_waits"><skipped type="pytest.skip" message="needs torch"/></testcase>
<testcase classname="tests.a" name="test_known"><skipped type="pytest.xfail" message="known"/></testcase>
</testsuite></testsuites>"""


def test_last_line_counts_the_skipped_tests_of_all_reports(tmp_path: Path) -> None:
    reports = [tmp_path / "one.xml", tmp_path / "two.xml"]
    for report in reports:
        report.write_text(REPORT)
    command = [sys.executable, str(ROOT / ".ci" / "skipped.py"), *map(str, reports)]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["tests.a::test_waits: needs torch"] * 2 + ["skipped tests: 2"]
