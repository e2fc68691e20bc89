"""Architectures by name: in, the name of a preset; out, an Architecture, and how its source spread the tables."""

import difflib
from dataclasses import dataclass

from tracereplay.errors import UsageError
from tracereplay.synth.architecture import Architecture, parse_architecture

_KAGGLE = (
    "1460,583,10131227,2202608,305,24,12517,633,3,93145,5683,8351593,3194,27,14992,5461306,10,5652,2173,4,7046547,18,15,"
    "286181,105,142572"
)
_TERABYTE = (
    "9980333,36084,17217,7378,20134,3,7112,1442,61,9758201,1333352,313829,10,2208,11156,122,4,970,14,9994222,7267859,9946608,"
    "415421,12420,101,36"
)
_MLPERF_V1 = (
    "39884406,39043,17289,7420,20263,3,7120,1543,63,38532951,2953546,403346,10,2208,11938,155,4,976,14,39979771,25641295,"
    "39664984,585935,12972,108,36"
)
# Rows with the number of values a sample has in each (multi-hot), 214 together.
_MLPERF_DCNV2 = (
    "40000000:3,39060:2,17295:1,7424:2,20265:6,3:1,7122:1,1543:1,63:1,40000000:7,3067956:3,405282:8,10:1,2209:6,11938:9,155:5,"
    "4:1,976:1,14:1,40000000:12,40000000:100,40000000:27,590152:10,12973:3,108:1,36:1"
)


@dataclass(frozen=True, slots=True)
class Preset:
    """An architecture with its source. ``ranks`` says which rank held each table there, None a replicated one; None as a whole
    where the source does not say.
    """

    name: str
    architecture: str
    source: str
    ranks: tuple[int | None, ...] | None = None


def _capped(rows: str, most: int) -> str:
    return ",".join(str(min(int(count), most)) for count in rows.split(","))


# facebookresearch/dlrm is "dlrm" below; harvard-acc/DeepRecSys "DeepRecSys".
_PRESETS = (
    Preset("bench", "512-512-64/1024-1024-1024-1/8x1000000:100", "dlrm bench/dlrm_s_benchmark.sh"),
    Preset("kaggle", f"13-512-256-64-16/512-256-1/{_KAGGLE}", "dlrm bench/dlrm_s_criteo_kaggle.sh"),
    Preset("terabyte", f"13-512-256-64/512-512-256-1/{_TERABYTE}", "dlrm bench/dlrm_s_criteo_terabyte.sh, rows at most 10 M"),
    Preset("mlperf-v1", f"13-512-256-128/1024-1024-512-256-1/{_MLPERF_V1}", "dlrm bench/run_and_time.sh, rows at most 40 M"),
    Preset(
        "mlperf-small",
        f"13-512-256-128/1024-1024-512-256-1/{_capped(_MLPERF_V1, 2_000_000)}",
        "mlperf-v1 with rows at most 2 M, so that a host of 24 GiB holds it",
    ),
    Preset(
        "mlperf-dcnv2",
        f"13-512-256-128/1024-1024-512-256-1/{_MLPERF_DCNV2}/dcn:3:512",
        "mlcommons/training recommendation_v2/torchrec_dlrm",
    ),
    Preset("ddp", "128-128-128-128/512-512-512-256-1/8x80000:1", "dlrm README, distributed example"),
    Preset("lin-test", "512-64/1024-1/1000000:10", "owensgroup/ml_perf_model, DLRM_test"),
    Preset("param", "2000-1024-1024-128/4096-4096-4096-1/64x14000:100", "facebookresearch/param, workload of its README"),
    Preset("rm1", "128-64-32/256-64-1/8x4000000:80/cat", "DeepRecSys, RM1: bound by its tables"),
    Preset("rm2", "256-128-64/128-64-1/32x500000:120/cat", "DeepRecSys, RM2: between RM1 and RM3"),
    Preset("rm3", "2560-1024-256-32/512-256-1/10x2000000:20/cat", "DeepRecSys, RM3: bound by its layers"),
    Preset(
        "param-v100x8",
        f"13-256-128-16/512-512-256-1/{_MLPERF_DCNV2}",
        "PARAM: TorchRec DLRM on 8 V100; which rank held which table follows from the sizes of its FBGEMM arguments and of its "
        "index all-to-all, uniquely",
        (0, 0, 2, 5, 1, None, 6, 0, 4, 1, 5, 7, 7, 7, 4, 2, None, 1, 6, 2, 3, 4, 6, 3, 3, 5),
    ),
)
PRESETS = {preset.name: preset for preset in _PRESETS}


def preset_named(name: str) -> Preset:
    """The preset of that name; underscores count as hyphens.

    Raises:
        UsageError: there is none.
    """
    wanted = name.lower().replace("_", "-")
    if wanted not in PRESETS:
        near = difflib.get_close_matches(wanted, PRESETS, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"presets are {', '.join(PRESETS)}"
        raise UsageError(f"no preset {name!r}", hint=hint)
    return PRESETS[wanted]


def architecture_of(preset: Preset) -> Architecture:
    """The architecture of a preset under its name."""
    return parse_architecture(preset.architecture, preset.name)
