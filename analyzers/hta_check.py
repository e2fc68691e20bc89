"""A second opinion on where a rank's device time goes: in, event tables; out, the rows that HTA computes from them.

HTA (Holistic Trace Analysis) reads files with its own loader, which drops the last step and rounds times. Here it is
given our rows instead, so that a difference is a difference of definitions and never of reading. HTA itself is
installed under one of two names, ``holistictraceanalysis`` (up to 0.5) or ``traceinsight`` (from 0.6); both import as
``hta``, and both work here.

What HTA means by its words: the window runs from a rank's first device start to its last device end, over all devices
and streams of the rank; idle is the window less the union of all device work; compute is the union of the kernels
whose name is neither a collective's nor a copy's; non-compute is what is left, so device time that overlaps compute
counts as compute. It tells the kinds apart by name alone, each release with other patterns.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracereplay.errors import TraceError, UsageError
from tracereplay.trace.schema import DEVICE_ROLES
from tracereplay.trace.table import EventTable

HOST_STREAM = -1  # HTA's word for "not on a device"


@dataclass(frozen=True, slots=True)
class TemporalBreakdown:
    """One rank's device time as HTA splits it: ``idle_ns + compute_ns + non_compute_ns == window_ns``."""

    rank: int
    window_ns: int
    idle_ns: int
    compute_ns: int
    non_compute_ns: int


def hta_temporal_breakdown(tables: Mapping[int, EventTable]) -> tuple[TemporalBreakdown, ...]:
    """HTA's temporal breakdown of each rank, by rank.

    Raises:
        UsageError: HTA is not installed.
        TraceError: a rank has no device work, which HTA's breakdown is about.
    """
    try:
        from hta.analyzers.breakdown_analysis import BreakdownAnalysis  # noqa: PLC0415  an extra, and slow to import
    except ImportError as error:
        raise UsageError("HTA is not installed", hint="install tracereplay[hta]") from error
    trace = _hta_trace(dict(sorted(tables.items())))
    with warnings.catch_warnings():
        # HTA sorts in place, which pandas 3.1 warns of; not ours to mend.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        rows = BreakdownAnalysis.get_temporal_breakdown(trace, visualize=False).to_dict("records")
    return tuple(_breakdown(row) for row in rows)


def _breakdown(row: Mapping[str, int]) -> TemporalBreakdown:
    """One row of HTA's result; its titles say us because its loader hands on us, the numbers are those it was given."""
    return TemporalBreakdown(
        rank=int(row["rank"]),
        window_ns=int(row["kernel_time(us)"]),
        idle_ns=int(row["idle_time(us)"]),
        compute_ns=int(row["compute_time(us)"]),
        non_compute_ns=int(row["non_compute_time(us)"]),
    )


def _hta_trace(tables: Mapping[int, EventTable]) -> Any:  # HTA ships no types
    """HTA's trace object around our rows, made without its ``__init__``, which would look for files."""
    from hta.common.trace import Trace  # noqa: PLC0415
    from hta.common.trace_symbol_table import TraceSymbolTable  # noqa: PLC0415

    symbols = TraceSymbolTable()
    for table in tables.values():
        symbols.add_symbols([*table.dictionary("name"), *table.dictionary("category")])
    trace = object.__new__(Trace)
    trace.symbol_table = symbols
    trace.traces = {rank: _hta_frame(table, symbols.get_sym_id_map()) for rank, table in tables.items()}
    trace.meta_data = {}
    trace.is_parsed = True
    return trace


def _hta_frame(table: EventTable, symbol_ids: Mapping[str, int]) -> Any:  # pandas ships no types
    """One rank's rows in the columns of HTA's loader; events without a duration are left out.

    Only kernels, copies and memory sets keep their stream: annotations and synchronisation rows carry one too, and HTA
    would count them as device work.
    """
    import pandas as pd  # noqa: PLC0415  0.4 s, and nothing else here needs it

    on_device = np.isin(table.column("role"), [int(role) for role in DEVICE_ROLES])
    timed = table.table.column("dur_ns").is_valid().to_numpy()
    if not (on_device & timed).any():
        raise TraceError("no device work, so no breakdown of it", where=table.path, hint="leave this rank out")
    # From the file's first event: HTA passes times through floats, which near the epoch's 1.7e18 ns are 256 ns apart.
    ts_ns = table.column("ts_ns") - table.column("ts_ns").min()
    frame = pd.DataFrame(
        {
            "index": table.column("event"),
            "cat": _symbol_column(table, "category", symbol_ids),
            "name": _symbol_column(table, "name", symbol_ids),
            "ts": ts_ns,
            "dur": table.column("dur_ns"),
            "stream": np.where(on_device, np.maximum(table.column("stream"), 0), HOST_STREAM),
            "correlation": table.column("correlation"),
        }
    )
    frame["end"] = frame["ts"] + frame["dur"]
    return frame[timed]


def _symbol_column(table: EventTable, column: str, symbol_ids: Mapping[str, int]) -> Any:
    """A text column as HTA's symbol numbers."""
    ids = np.array([symbol_ids[text] for text in table.dictionary(column)], dtype=np.int64)
    return ids[table.codes(column)]
