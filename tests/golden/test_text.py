"""What people read, whole: one golden file a verb and sample. ``--update-golden`` rewrites them; the commit says why."""

from pathlib import Path

import pytest

from tracereplay.cli.main import main

GOLDEN = Path(__file__).parent
CASES = {
    "info": ["info", "sample_traces/dlrm_2rank"],
    "replay": ["replay", "sample_traces/dlrm_2rank"],
    "whatif_all_to_all": ["whatif", "sample_traces/dlrm_2rank", "--scale", "collective:all_to_all=0.5x"],
    "whatif_hardware": ["whatif", "sample_traces/dlrm_2rank", "--set", "fabric.*.bandwidth=2x", "--set", "host.speed=2x"],
    "whatif_zion": ["whatif", "sample_traces/dlrm_2rank", "--hardware", "zion", "--set", "accelerator.model=a100-40-sxm"],
    "whatif_one_rank": ["whatif", "sample_traces/dlrm_2rank", "--ranks", "1", "--scale", "collective:*=0.5x"],
    "whatif_ideal": ["whatif", "sample_traces/dlrm_2rank_slow_peer", "--ideal", "stragglers", "--scale", "host=0.5x"],
    "sweep": ["sweep", "sample_traces/dlrm_2rank", "--set", "host.speed=1x:16x:5:log"],
    "sweep_zion": ["sweep", "sample_traces/dlrm_2rank", "--hardware", "zion", "--set", "host.speed=1x,2x,4x"],
    "sweep_two": ["sweep", "sample_traces/dlrm_2rank", "--set", "host.memory.bandwidth=1x,4x", "--set", "host.speed=1x,2x"],
    "attribute": ["attribute", "sample_traces/dlrm_2rank"],
    "why": ["why", "sample_traces/dlrm_2rank_slow_peer", "--rank", "0", "--name", "Optimizer.step*", "--step", "4"],
    "synth_rm2": ["synth", "dlrm", "--preset", "rm2", "--ranks", "8", "--batch", "16384", "--hardware", "dgx-a100"],
    "synth_recorded_job": ["synth", "dlrm", "--preset", "param-v100x8", "--ranks", "8", "--batch", "128", "--hardware", "dgx1"],
    "synth_cached": [
        "synth",
        "dlrm",
        "--preset",
        "mlperf-v1",
        "--ranks",
        "4",
        "--batch",
        "8192",
        "--hardware",
        "dgx-a100",
        "--placement",
        "cached",
        "--skew",
        "1",
    ],
    "hardware_list": ["hardware", "list"],
    "hardware_show_zion": ["hardware", "show", "zion"],
    "hardware_show_v100": ["hardware", "show", "v100"],
    "attribute_slow_peer": ["attribute", "sample_traces/dlrm_2rank_slow_peer"],
}


@pytest.mark.parametrize("name", CASES)
def test_text_is_as_the_golden_file(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(GOLDEN.parent.parent)
    path = GOLDEN / f"{name}.txt"

    status = main(CASES[name])

    text = capsys.readouterr().out
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert status == 0
    assert text == path.read_text(encoding="utf-8")
