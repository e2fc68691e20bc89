"""A link as a laboratory shapes it: in, ``1gbit`` and ``50us`` as ``tc`` writes them; out, a rate and a delay, checked.

Rates count what is on the wire, headers included, as ``tc`` and data sheets of networks do.
"""

import re
from dataclasses import dataclass
from typing import Final

from tracereplay.errors import UsageError

UNSHAPED: Final = "unshaped"
_RATE = re.compile(r"(\d+(?:\.\d+)?)([kmg])bit")
_DELAY = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)")
_BITS = {"k": 10**3, "m": 10**6, "g": 10**9}
_NS = {"us": 10**3, "ms": 10**6, "s": 10**9}
_SLOWEST_BITS, _LONGEST_NS = 10**6, 10**9

# Jumbo frames, as networks of training clusters have them; and since a virtual link's frames are work of the processor that
# trains: with 1,500 bytes 400 Mbit/s took half of a core, with 9,000 a tenth.
MTU: Final = 9_000
# A frame on the wire, and what of it is payload: 14 bytes of Ethernet, 20 of IP, 20 of TCP and 12 of its timestamps are not
# (IEEE 802.3; RFC 9293, RFC 7323).
FRAME_BYTES: Final = MTU + 14
PAYLOAD_BYTES: Final = MTU - 52
# A token bucket is refilled by a timer: one that holds less than the timer's lateness loses rate, one that holds more lets a
# burst pass unshaped. Measured at 1 Gbit/s: 66 µs of the rate lose 11 %, 130 µs 8 %, 260 µs 3 to 6 %.
_BUCKET_NS: Final = 250_000
_LEAST_FRAMES: Final = 2


@dataclass(frozen=True, slots=True)
class Link:
    """What one end of a link may send, in bits a second (None: as fast as it goes), and how long a frame is on its way."""

    rate_bits: int | None = None
    delay_ns: int = 0

    @property
    def bucket_bytes(self) -> int:
        """What may pass at once after a pause."""
        return max(_LEAST_FRAMES * FRAME_BYTES, (self.rate_bits or 0) * _BUCKET_NS // (8 * 10**9))

    @property
    def text(self) -> str:
        """For people and file names: ``1gbit``, ``200mbit+50us``, ``unshaped``."""
        rate = UNSHAPED if self.rate_bits is None else _short(self.rate_bits)
        return rate + (f"+{self.delay_ns / 1_000:g}us" if self.delay_ns else "")


def parse_link(rate: str, delay: str | None = None) -> Link:
    """The link of ``--link`` and ``--delay``; ``unshaped`` for no limit.

    Raises:
        UsageError: another form, a rate below 1 Mbit/s, a delay of more than a second.
    """
    return Link(None if rate == UNSHAPED else _rate(rate), 0 if delay is None else _delay(delay))


def _rate(text: str) -> int:
    match = _RATE.fullmatch(text.lower())
    bits = 0 if match is None else round(float(match[1]) * _BITS[match[2]])
    if bits < _SLOWEST_BITS:
        raise UsageError(
            f"--link {text!r} is no rate", hint=f"write 200mbit or 1gbit, at least 1mbit, or {UNSHAPED} for no limit"
        )
    return bits


def _delay(text: str) -> int:
    match = _DELAY.fullmatch(text.lower())
    ns = -1 if match is None else round(float(match[1]) * _NS[match[2]])
    if not 0 <= ns <= _LONGEST_NS:
        raise UsageError(f"--delay {text!r} is no delay", hint="write 50us or 2ms, at most 1s")
    return ns


def _short(bits: int) -> str:
    for sign, size in (("gbit", 10**9), ("mbit", 10**6)):
        if bits >= size:
            return f"{bits / size:g}{sign}"
    return f"{bits / 1_000:g}kbit"
