"""Units and their printing: times are int nanoseconds everywhere inside; this is where they are converted."""

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


def format_ns(value_ns: int | None) -> str:
    """A time for people: the largest unit that keeps at least three digits; ``n/a`` where not recorded."""
    if value_ns is None:
        return "n/a"
    size = abs(value_ns)
    if size >= NS_PER_S:
        return f"{value_ns / NS_PER_S:,.3f} s"
    if size >= NS_PER_MS:
        return f"{value_ns / NS_PER_MS:,.3f} ms"
    if size >= NS_PER_US:
        return f"{value_ns / NS_PER_US:,.1f} µs"
    return f"{value_ns} ns"


def format_share(share: float | None) -> str:
    """A fraction as per cent with one decimal; ``n/a`` where not recorded."""
    return "n/a" if share is None else f"{100 * share:.1f} %"
