"""``make bench``, reading: ours beside HTA's loader and beside the floor, on the same files in one run.

Each measurement is a process of its own: one warm-up read, then the median of the timed ones, and the process's peak memory.
The floor is what cannot be left out: inflating the bytes and decoding them with msgspec into the same typed structs.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.generate import generated
from benchmarks.measure import MB, in_a_process, spread, timed

MILLION = 1_000_000


def measure_ours(path: Path) -> Callable[[], int]:
    """Read with this project's reader, one process, no cache."""
    from tracereplay.trace.kineto import read_kineto  # noqa: PLC0415 - each process imports what it measures

    return lambda: read_kineto(path).recorded_events


def measure_stored(path: Path) -> Callable[[], int]:
    """Open the same trace from a job directory's parquet."""
    from tracereplay.trace.kineto import read_kineto  # noqa: PLC0415
    from tracereplay.trace.store import read_table, write_table  # noqa: PLC0415

    stored = Path(tempfile.mkdtemp()) / "trace.parquet"
    write_table(read_kineto(path), stored)
    return lambda: read_table(stored).recorded_events


def measure_floor(path: Path) -> Callable[[], int]:
    """Inflate and decode, nothing else."""
    import msgspec  # noqa: PLC0415
    from isal import igzip  # noqa: PLC0415

    from tracereplay.trace.event import Event  # noqa: PLC0415

    class Document(msgspec.Struct):
        traceEvents: list[Event]  # noqa: N815 - Kineto's spelling

    decode = msgspec.json.Decoder(Document, strict=False).decode
    return lambda: len(decode(igzip.decompress(path.read_bytes())).traceEvents)


def measure_hta(path: Path) -> Callable[[], int]:
    """Load with HTA: what ``TraceAnalysis`` does before its first answer."""
    from hta.common.trace import Trace  # noqa: PLC0415

    def load() -> int:
        trace = Trace(trace_files={0: str(path)}, trace_dir=str(path.parent))
        trace.parse_traces(use_multiprocessing=False)
        return len(trace.traces[0])

    return load


MEASURES = {"ours": measure_ours, "stored": measure_stored, "floor": measure_floor, "hta": measure_hta}


def run_one(what: str, path: Path, repeats: int) -> dict[str, float]:
    """The figures of one process."""
    return timed(MEASURES[what](path), repeats, warm_up=what != "hta" or repeats > 1)


def measured(what: str, path: Path, repeats: int) -> dict[str, float] | None:
    """``run_one`` in a process of its own; None where it fails (HTA not installed)."""
    figures = in_a_process("benchmarks.reader", ["--one", what, "--repeats", str(repeats), str(path)])
    if isinstance(figures, str):
        sys.stdout.write(f"  {what}: not measured ({figures})\n")
        return None
    return figures


def size_of(path: Path) -> tuple[int, float]:
    """Events and JSON megabytes of a trace."""
    from isal import igzip  # noqa: PLC0415

    from tracereplay.trace.kineto import read_kineto  # noqa: PLC0415

    return read_kineto(path).recorded_events, len(igzip.decompress(path.read_bytes())) / MB


def report(name: str, path: Path, repeats: int) -> None:
    """Measure one file every way and print it."""
    events, size_mb = size_of(path)
    sys.stdout.write(f"\n{name}: {events:,} events, {size_mb:.1f} MB of JSON\n")
    few = 1 if events >= MILLION // 2 else repeats
    rows = {what: measured(what, path, few if what == "hta" else repeats) for what in ("ours", "floor", "stored", "hta")}
    for what, row in rows.items():
        if row is not None:
            sys.stdout.write(
                f"  {what:7s} {spread(row)}  "
                f"{events / row['seconds']:12,.0f} events/s  {size_mb / row['seconds']:7.1f} MB/s  "
                f"peak {row['peak_mb']:7.0f} MB\n"
            )
    ours, floor, stored, hta = (rows[k] for k in ("ours", "floor", "stored", "hta"))
    if ours is None or floor is None or stored is None:
        return
    sys.stdout.write(f"  ratios: time over the floor {ours['seconds'] / floor['seconds']:.2f}; ")
    sys.stdout.write(f"first open over second {ours['seconds'] / stored['seconds']:.1f}; ")
    sys.stdout.write(f"memory over 3 x JSON + 200 MB {ours['peak_mb'] / (3 * size_mb + 200):.2f}")
    if hta is not None:
        sys.stdout.write(
            f"; events/s over HTA's {hta['seconds'] / ours['seconds']:.1f}"
            f"; memory over HTA's {ours['peak_mb'] / hta['peak_mb']:.2f}"
        )
    sys.stdout.write("\n")


def main() -> None:
    """Measure the files of the corpus that are there, and a generated trace of a million events."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", choices=sorted(MEASURES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--events", type=int, default=MILLION)
    parser.add_argument("paths", nargs="*", type=Path)
    given = parser.parse_args()
    if given.one:
        sys.stdout.write(json.dumps(run_one(given.one, given.paths[0], given.repeats)) + "\n")
        return
    for path in [*given.paths, generated(given.events)]:
        if path.exists():
            report(f"{path.parent.name}/{path.name}", path, given.repeats)


if __name__ == "__main__":
    main()
