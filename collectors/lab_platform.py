"""A laboratory's host as a hardware file: in, its link and the machine; out, TOML for ``--from`` and ``--hardware``.

The file stands beside the traces, so that `tracereplay whatif` knows what the job ran on.
"""

import json
from typing import Final

from tracereplay.collectors.link import FRAME_BYTES, PAYLOAD_BYTES, Link
from tracereplay.manifest import HostRecord

FILE_NAME: Final = "platform.toml"
# A pair of virtual interfaces hands frames over in memory: the hosts' network stacks are the limit, at a few GB/s. A figure far
# above theirs says that the link is none.
_UNSHAPED_GBITS: Final = (400, 100, 1000)
# From one virtual interface over the bridge to the other, without a limit: a few microseconds of the kernel's.
_HOP_US: Final = (5, 1, 20)


def platform_text(link: Link, host: HostRecord, cores: int) -> str:
    """The file of a platform whose nodes are hosts of the laboratory, each with ``cores`` of the machine's cores."""
    facts = {
        "host": {
            "processor": _fact(host.cpu_model or "unknown processor", "name", "measured", "/proc/cpuinfo"),
            "sockets": _fact(1, "1", "measured", "a host of the laboratory is cores of one machine"),
            "cores": _fact(cores, "1", "measured", "cores that its rank is bound to"),
        },
        "host.memory": {
            "capacity": _fact(host.memory_bytes, "B", "measured", "the machine's, which all hosts share"),
            "bandwidth": _unknown("GB/s"),
            "achievable": _unknown("GB/s"),
        },
        "fabric.scale_out": {
            "technology": _fact("veth", "name", "spec", "Linux veth(4)"),
            "nics": _fact(1, "1", "spec", "one interface a host"),
            "attached_to": _fact("socket", "name", "spec", "one interface a host"),
            **_rates(link),
            "latency": _latency(link),
        },
    }
    name = "lab-" + link.text.replace(".", "-").replace("+", "-")
    head = [
        'schema = "tracereplay/hardware/1"', 'type = "platform"', f"name = {json.dumps(name)}",
        f"title = {json.dumps(f'Laboratory: hosts in network namespaces, joined by a link of {link.text}')}",
    ]  # fmt: skip
    sections = [f"\n[{section}]\n" + "\n".join(f"{key} = {fact}" for key, fact in of.items()) for section, of in facts.items()]
    return "\n".join([*head, *sections]) + "\n"


def _rates(link: Link) -> dict[str, str]:
    of_frames = f"{PAYLOAD_BYTES} bytes of payload in a frame of {FRAME_BYTES} (RFC 9293, RFC 7323)"
    if link.rate_bits is None:
        likely, low, high = _UNSHAPED_GBITS
        source = "not limited: the hosts' network stacks are"
        return {
            "bandwidth": _fact(likely, "Gb/s", "assumed", source, span=(low, high), one_way=True),
            "achievable": _fact(likely, "Gb/s", "assumed", source, span=(low, high), one_way=True),
        }
    payload = link.rate_bits * PAYLOAD_BYTES / FRAME_BYTES
    return {
        "bandwidth": _fact(link.rate_bits / 1e9, "Gb/s", "spec", "tc-tbf(8), rate", one_way=True),
        "achievable": _fact(round(payload / 1e9, 9), "Gb/s", "derived", of_frames, one_way=True),
    }


def _latency(link: Link) -> str:
    likely, low, high = (hop + link.delay_ns / 1_000 for hop in _HOP_US)
    source = "a hop of the kernel" + (", and tc-netem(8), delay" if link.delay_ns else "")
    return _fact(likely, "µs", "assumed", source, span=(low, high))


def _fact(  # noqa: PLR0913 - a fact has so many sides
    value: float | str, unit: str, kind: str, source: str, *, span: tuple[float, float] | None = None, one_way: bool = False
) -> str:
    parts = [f"value = {json.dumps(value)}", f"unit = {json.dumps(unit, ensure_ascii=False)}", f"kind = {json.dumps(kind)}"]
    if one_way:
        parts.insert(2, 'direction = "one-way"')
    if span is not None:
        parts.append(f"range = {json.dumps(list(span))}")
    return "{ " + ", ".join([*parts, f"source = {json.dumps(source)}"]) + " }"


def _unknown(unit: str) -> str:
    return f'{{ unit = "{unit}", kind = "unknown", source = "not measured here" }}'
