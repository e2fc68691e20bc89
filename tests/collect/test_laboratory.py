"""Real namespaces, a real shaped link, and what is left of them."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracereplay.collectors.link import parse_link
from tracereplay.collectors.namespaces import LabHost, joined_hosts
from tracereplay.errors import CollectError

pytestmark = pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="network namespaces need root on Linux")


@pytest.fixture
def hosts() -> Iterator[tuple[LabHost, ...]]:
    with joined_hosts(2, parse_link("100mbit")) as made:
        yield made


def said(host: LabHost, *command: str) -> str:
    return subprocess.run((*host.enter, *command), capture_output=True, text=True, check=True).stdout


def test_hosts_have_an_interface_that_is_shaped_and_reach_each_other(hosts: tuple[LabHost, ...]) -> None:
    shaped = said(hosts[0], "tc", "qdisc", "show", "dev", "eth0")

    assert "tbf" in shaped
    assert "rate 100Mbit" in shaped
    assert hosts[1].address in said(hosts[1], "ip", "address", "show", "eth0")
    listening = subprocess.Popen((*hosts[1].enter, sys.executable, "-c", _LISTEN), stdout=subprocess.PIPE, text=True)
    assert listening.stdout is not None
    assert listening.stdout.readline() == "ready\n"
    assert said(hosts[0], sys.executable, "-c", _SEND, hosts[1].address) == "sent\n"
    assert listening.communicate()[0] == "2500000\n"


def test_what_is_sent_waits_in_the_bucket(hosts: tuple[LabHost, ...]) -> None:
    with subprocess.Popen((*hosts[1].enter, sys.executable, "-c", _LISTEN), stdout=subprocess.PIPE, text=True) as listening:
        assert listening.stdout is not None
        listening.stdout.readline()
        said(hosts[0], sys.executable, "-c", _SEND, hosts[1].address)

    counted = re.search(r"Sent (\d+) bytes .* overlimits (\d+)", said(hosts[0], "tc", "-s", "qdisc", "show", "dev", "eth0"))

    assert counted is not None
    # 2.5 MB and their headers, and a bucket of 18 KiB that they found empty again and again.
    assert 2_500_000 < int(counted[1]) < 2_600_000
    assert int(counted[2]) > 100


def test_nothing_of_it_is_left_nor_was_seen_outside() -> None:
    before = interfaces()
    with joined_hosts(3, parse_link("1gbit")) as made:
        assert len({said(host, "readlink", "/proc/self/ns/net") for host in made}) == 3
        assert interfaces() == before
        holders = [int(host.enter[2]) for host in made]
    assert interfaces() == before
    assert not any(Path(f"/proc/{pid}").exists() for pid in holders)


def test_a_killed_laboratory_leaves_nothing() -> None:
    program = textwrap.dedent("""
        import sys, time
        from tracereplay.collectors.link import Link
        from tracereplay.collectors.namespaces import joined_hosts
        with joined_hosts(2, Link()) as hosts:
            print(*(host.enter[2] for host in hosts), flush=True)
            time.sleep(600)
    """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as laboratory:
        assert laboratory.stdout is not None
        holders = [Path(f"/proc/{pid}") for pid in laboratory.stdout.readline().split()]
        assert len(holders) == 2
        assert all(holder.exists() for holder in holders)
        laboratory.send_signal(signal.SIGKILL)

    deadline = time.monotonic() + 20
    while any(is_running(holder) for holder in holders) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(is_running(holder) for holder in holders)


def can_delay() -> bool:
    command = ["unshare", "--net", "--", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_kernel_that_can_delay_does() -> None:
    if not can_delay():
        pytest.skip("this kernel has no netem")
    with joined_hosts(2, parse_link("1gbit", "50us")) as hosts:
        assert "delay 50us" in said(hosts[0], "tc", "qdisc", "show", "dev", "eth0")


def test_a_kernel_that_cannot_delay_says_so() -> None:
    if can_delay():
        pytest.skip("this kernel has netem")
    with (
        pytest.raises(CollectError, match=r"this kernel has no netem \(CONFIG_NET_SCH_NETEM\); leave --delay out"),
        joined_hosts(2, parse_link("1gbit", "50us")),
    ):
        pass


def test_tools_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with (
        pytest.raises(CollectError, match="a laboratory needs unshare, nsenter, ip, tc; install iproute2 and util-linux"),
        joined_hosts(2, parse_link("1gbit")),
    ):
        pass


def interfaces() -> str:
    return subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout


def is_running(process: Path) -> bool:
    try:
        return "State:\tZ" not in (process / "status").read_text()
    except OSError:
        return False


_LISTEN = """
import socket
server = socket.create_server(("", 5000))
print("ready", flush=True)
link, _ = server.accept()
total = 0
while part := link.recv(65536):
    total += len(part)
print(total)
"""
_SEND = """
import socket, sys
link = socket.create_connection((sys.argv[1], 5000))
link.sendall(bytes(2_500_000))
link.close()
print("sent")
"""
