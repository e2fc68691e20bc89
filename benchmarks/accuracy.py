"""``make accuracy``: how close replays and predictions come to what was recorded, as ``docs/accuracy.md``.

In: the corpus of public traces (``$TRACEREPLAY_CORPUS``, else ``../shared/corpus``), this project's sample traces, and the
interpreter of an environment with HTA. Out: the page, every figure of it measured in this run. Without a corpus only the
sample traces are measured; ``TRACEREPLAY_REQUIRE_CORPUS=1`` makes that an error.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from platform import python_version

from benchmarks import accuracy_page
from benchmarks.comparisons import Replayed, replayed, without_straggler
from benchmarks.hta_path import version_of
from benchmarks.recordings import Recording, find_recordings
from tests.truth.report import rows as truth_rows
from tracereplay.errors import TracereplayError, UsageError

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "sample_traces"
# The same job with and without a rank that is silent for about a second in each step.
STRAGGLER_ON, STRAGGLER_OFF = "torchrec_straggler_on", "torchrec_straggler_off"


def corpus_folder() -> Path | None:
    """Where the corpus is; None where there is none.

    Raises:
        UsageError: there is none, and ``TRACEREPLAY_REQUIRE_CORPUS`` is 1.
    """
    folder = Path(os.environ.get("TRACEREPLAY_CORPUS") or ROOT.parent / "shared" / "corpus")
    if folder.is_dir():
        return folder
    if os.environ.get("TRACEREPLAY_REQUIRE_CORPUS") == "1":
        raise UsageError(
            "TRACEREPLAY_REQUIRE_CORPUS=1, but there is no corpus", where=str(folder), hint="set TRACEREPLAY_CORPUS"
        )
    return None


def set_folders(corpus: Path | None) -> list[Path]:
    """The folders that are measured, one a set: those of the corpus, then those of the sample traces."""
    traces = [corpus / "traces"] if corpus is not None else []
    return [folder for parent in (*traces, SAMPLES) for folder in sorted(parent.iterdir()) if folder.is_dir()]


def versions(hta: str | None) -> tuple[str, ...]:
    """What the figures were measured with."""
    ours = (f"Python {python_version()}", *(f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "networkx")))
    return (*ours, f"HTA as {version_of(hta)}" if hta else "HTA not run")


def measured_page(hta: str | None, seeds: int) -> str:
    """The whole page, measured now."""
    corpus = corpus_folder()
    found = find_recordings(set_folders(corpus))
    rows = tuple(_one_after_another(found.jobs, hta))
    by_name = {job.name: job for job in found.jobs}
    pair = (by_name.get(STRAGGLER_ON), by_name.get(STRAGGLER_OFF))
    straggler = without_straggler(pair[0], pair[1]) if pair[0] and pair[1] else ()
    sys.stderr.write(f"simulated jobs: {seeds} of each variant\n" if seeds else "")
    truth = truth_rows(range(seeds)) if seeds else []
    return accuracy_page.page(rows, found.left_out, straggler, truth, versions(hta))


def _one_after_another(jobs: Sequence[Recording], hta: str | None) -> Iterator[Replayed]:
    for number, job in enumerate(jobs, start=1):
        sys.stderr.write(f"{number} of {len(jobs)}: {job.name}\n")
        yield replayed(job, hta)


def run(arguments: Sequence[str]) -> int:
    """Write the page; the exit code is that of the error, if any."""
    parser = argparse.ArgumentParser(prog="benchmarks.accuracy", description="measure how close replays and predictions come")
    parser.add_argument("--hta", metavar="PYTHON", help="interpreter of an environment with HTA; without it HTA is not run")
    parser.add_argument("--seeds", type=int, default=50, help="simulated jobs of each variant (default 50; 0: none)")
    parser.add_argument("--output", type=Path, help="the page's file; without it the page is printed")
    given = parser.parse_args(arguments)
    try:
        text = measured_page(given.hta, given.seeds)
    except TracereplayError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if given.output is None:
        sys.stdout.write(text)
    else:
        given.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
