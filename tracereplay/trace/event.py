"""The typed shape into which a trace event is decoded: the only fields that become columns."""

import msgspec

NONE = -1


class Args(msgspec.Struct, gc=False):
    """The fields of ``args`` that become columns; ``NONE`` where the event has none, which makes a column in one go."""

    correlation: int | None = NONE
    stream: int | None = NONE
    device: int | None = NONE
    external_id: int | None = msgspec.field(default=NONE, name="External id")
    external_id_lower: int | None = msgspec.field(default=NONE, name="external id")


class Event(msgspec.Struct, gc=False):
    """One trace event; times are kept as text."""

    ph: str = ""
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")
    args: Args | None = None
