"""HTA's own loader reads a re-timed trace and finds the device time that we wrote."""

from pathlib import Path

import pytest

from tracereplay.analyzers.hta_check import hta_temporal_breakdown
from tracereplay.graph.build import build_graph
from tracereplay.replay.engine import replay
from tracereplay.replay.retime import retime
from tracereplay.replay.whatif import apply, parse_scale
from tracereplay.report.trace_file import trace_files
from tracereplay.trace.job import read_job

hta_trace = pytest.importorskip("hta.common.trace", reason="HTA is not installed; `make test-hta` has it")


@pytest.mark.filterwarnings("ignore")  # HTA's loader and pandas 3; not ours to mend
def test_hta_loads_a_re_timed_job(corpus: Path, tmp_path: Path) -> None:
    graph = build_graph(read_job([str(corpus / "traces" / "dlrm_v100x8")]))
    timing = apply(graph, [parse_scale("collective:all_to_all=0.5x")]).timing
    names = {}
    for rank, text in enumerate(trace_files(graph, retime(graph, replay(graph, timing)), compress=True)):
        names[rank] = f"rank{rank}.json.gz"
        (tmp_path / names[rank]).write_bytes(text)

    loaded = hta_trace.Trace(trace_files=names, trace_dir=str(tmp_path))
    loaded.parse_traces(use_multiprocessing=False)

    ours = {trace.rank or 0: trace.table for trace in read_job([str(tmp_path)]).ranks}
    for row in hta_temporal_breakdown(ours):
        frame = loaded.get_trace(row.rank)
        device = frame[frame["stream"] >= 0]
        window_us = (device["ts"] + device["dur"]).max() - device["ts"].min()
        assert window_us * 1_000 == pytest.approx(row.window_ns, abs=2_000)
