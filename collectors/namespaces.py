"""Hosts of a laboratory: in, how many and a link; out, network namespaces that a switch joins, gone when the block ends.

Every host is a network namespace with one interface, ``eth0``; its other end is a port of a bridge in a namespace of its own,
so that nothing appears in the namespace of the machine. A namespace lives as long as a process in it: each is held by a
``cat`` that reads from this process. When this process ends, however it ends, the pipe closes, the holder ends, and the kernel
takes the namespace away with its interfaces: there is nothing to clean up after a kill.

The rate of a link is that of a token bucket (``tc-tbf``) at the host, and with more than two hosts at the switch, too, where
several may send to one; its delay is ``tc-netem``'s at the host.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from tracereplay.collectors.link import MTU, Link
from tracereplay.errors import CollectError

INTERFACE: Final = "eth0"
_TOOLS = ("unshare", "nsenter", "ip", "tc")
# Addresses are seen inside the namespaces only (RFC 1918).
_ADDRESS = "10.77.0.{}"
_PREFIX = 24
# Deeper than what TCP has on its way, so that a queue drops nothing.
_QUEUE = "64mb"
_QUEUE_FRAMES = "100000"
# One that every kernel has and whose speed depends on nothing but the link: BBR, some systems' default, probes for bandwidth in
# the middle of a step, and stops sending every ten seconds to measure the delay.
CONGESTION_CONTROL: Final = "reno"
# Windows that hold what a slow link's queues hold: with Linux's 64 KiB the acknowledgements of one direction wait behind the
# data of the other. And no start from nothing after a pause, which hosts of training clusters switch off, too.
_TCP: Final = {
    "tcp_congestion_control": CONGESTION_CONTROL,
    "tcp_rmem": "4096 8388608 33554432",
    "tcp_wmem": "4096 4194304 33554432",
    "tcp_slow_start_after_idle": "0",
}


@dataclass(frozen=True, slots=True)
class LabHost:
    """One host: words that put a command into it, and its address on the network of the laboratory."""

    enter: tuple[str, ...]
    address: str


@contextmanager
def joined_hosts(count: int, link: Link) -> Iterator[tuple[LabHost, ...]]:
    """Hosts whose links are shaped as ``link`` says.

    Raises:
        CollectError: no Linux, tools or rights that are missing, or a kernel that cannot shape so.
    """
    _check_system()
    with ExitStack() as stack:
        switch = stack.enter_context(_namespace())
        _run((*switch, "ip", "link", "add", "br0", "type", "bridge"))
        _run((*switch, "ip", "link", "set", "br0", "mtu", str(MTU), "up"))
        hosts = []
        for number in range(count):
            enter = stack.enter_context(_namespace())
            hosts.append(LabHost(enter, _ADDRESS.format(number + 1)))
            _plug_in(switch, hosts[-1], f"port{number}")
            _shape(enter, INTERFACE, link)
            if count > 2:  # several may send to one: its cable carries no more towards it than from it
                _shape(switch, f"port{number}", Link(link.rate_bits))
        yield tuple(hosts)


def _check_system() -> None:
    if sys.platform != "linux":
        raise CollectError("a laboratory needs Linux's network namespaces", hint="run it on a Linux machine")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise CollectError(f"a laboratory needs {', '.join(missing)}", hint="install iproute2 and util-linux")
    if os.geteuid() != 0:
        raise CollectError(
            "network namespaces and shaping need root",
            hint="run it with sudo, or in a container with CAP_NET_ADMIN and CAP_SYS_ADMIN",
        )


@contextmanager
def _namespace() -> Iterator[tuple[str, ...]]:
    """Words that put a command into a new network namespace."""
    holder = subprocess.Popen(
        ["unshare", "--net", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    stdin, stdout, stderr = holder.stdin, holder.stdout, holder.stderr
    assert stdin is not None and stdout is not None and stderr is not None  # noqa: PT018 - pipes were asked for
    try:
        stdin.write("\n")
        stdin.flush()
        if not stdout.readline():  # cat answers once it runs, and it runs in the namespace
            raise CollectError(
                f"no network namespace here ({stderr.read().strip()})", hint="allow CAP_SYS_ADMIN, or use another machine"
            )
        yield "nsenter", "--target", str(holder.pid), "--net", "--"
    finally:
        stdin.close()
        holder.wait()
        stdout.close()
        stderr.close()


def _plug_in(switch: tuple[str, ...], host: LabHost, port: str) -> None:
    holder = host.enter[2]
    _run((*switch, "ip", "link", "add", port, "type", "veth", "peer", "name", INTERFACE, "netns", holder))
    _run((*switch, "ip", "link", "set", port, "mtu", str(MTU), "master", "br0", "up"))
    _run((*host.enter, "ip", "link", "set", "lo", "up"))
    _run((*host.enter, "ip", "address", "add", f"{host.address}/{_PREFIX}", "dev", INTERFACE))
    _run((*host.enter, "ip", "link", "set", INTERFACE, "mtu", str(MTU), "up"))
    for name, value in _TCP.items():
        _run((*host.enter, "sh", "-c", f"echo '{value}' > /proc/sys/net/ipv4/{name}"))


def _shape(enter: tuple[str, ...], device: str, link: Link) -> None:
    place: tuple[str, ...] = ("root",)
    if link.delay_ns:
        delay = f"{link.delay_ns / 1_000:g}us"
        _tc(enter, device, place, "1:", "netem", "delay", delay, "limit", _QUEUE_FRAMES)
        place = ("parent", "1:1")
    if link.rate_bits is not None:
        bucket = ("burst", str(link.bucket_bytes), "limit", _QUEUE)
        _tc(enter, device, place, "10:", "tbf", "rate", f"{link.rate_bits}bit", *bucket)


def _tc(enter: tuple[str, ...], device: str, place: tuple[str, ...], handle: str, kind: str, *options: str) -> None:
    try:
        _run((*enter, "tc", "qdisc", "add", "dev", device, *place, "handle", handle, kind, *options))
    except CollectError as error:
        if "Specified qdisc kind is unknown" not in error.what:
            raise
        option = "--delay" if kind == "netem" else "--link"
        raise CollectError(
            f"this kernel has no {kind} (CONFIG_NET_SCH_{kind.upper()})", hint=f"leave {option} out, or use another kernel"
        ) from error


def _run(command: tuple[str, ...]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join(command[command.index("--") + 1 :] if "--" in command else command)
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise CollectError(
            f"the laboratory's network: `{words}` failed ({said})", hint="is this container allowed CAP_NET_ADMIN?"
        )
