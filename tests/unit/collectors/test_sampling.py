import pytest

from tracereplay.collectors.measurement import Work, row_of
from tracereplay.collectors.sampling import Timing, sample


class Clock:
    """Blocks whose calls all take the same time; what was asked for is kept."""

    def __init__(self, call_ns: float) -> None:
        self.call_ns = call_ns
        self.asked: list[int] = []

    def block_ns(self, calls: int) -> float:
        self.asked.append(calls)
        return calls * self.call_ns


def test_short_calls_are_timed_in_blocks_of_a_millisecond() -> None:
    clock = Clock(call_ns=1_000)

    timing = sample(clock.block_ns, budget_s=0.05)

    # One call to warm up, three to see how long one takes; 1 ms are 1,000 of them; (50 ms - 4 µs) / 1 ms are 49 whole blocks.
    assert clock.asked[:4] == [1, 1, 1, 1]
    assert set(clock.asked[4:]) == {1_000}
    assert (timing.calls, timing.times_ns) == (1_000, (1_000.0,) * 49)


def test_long_calls_are_timed_three_times_whatever_there_is_time_for() -> None:
    clock = Clock(call_ns=2e9)

    timing = sample(clock.block_ns, budget_s=0.1)

    assert clock.asked == [1] * 5
    assert timing.times_ns == (2e9, 2e9, 2e9)


def test_blocks_that_get_slower_end_when_the_time_is_over() -> None:
    durations = iter([1e6, 1e6, 1e6, 1e6, *[10e6] * 50])

    timing = sample(lambda _calls: next(durations), budget_s=0.05)

    # 46 blocks of 1 ms were to come; five of 10 ms fill 50 ms.
    assert timing.times_ns == (10e6,) * 5


def test_the_shortest_first_call_says_how_many_make_a_block() -> None:
    durations = iter([9e6, 8e6, 1e5, 8e6])

    timing = sample(lambda calls: next(durations, calls * 1e5), budget_s=1.0)

    assert timing.calls == 10


@pytest.mark.parametrize(
    ("times", "median", "spread"),
    # Quartiles of 1, 2, 3, 4, 100: 2 and 4. Of 10, 20: 12.5 and 17.5.
    [((3.0, 1.0, 100.0, 2.0, 4.0), 3.0, 2.0), ((10.0, 20.0), 15.0, 5.0), ((7.0,), 7.0, 0.0)],
)
def test_median_and_spread_are_those_of_the_middle_half(times: tuple[float, ...], median: float, spread: float) -> None:
    timing = Timing(times, calls=1)

    assert (timing.median_ns, timing.spread_ns) == (median, spread)


def test_a_rate_is_the_amount_over_the_median_time() -> None:
    work = Work("gemm", "torch.mm", "host", "fp32", {"m": 10, "n": 10, "k": 10}, "FLOP/s", amount=2_000.0)

    row = row_of(work, Timing((400.0, 500.0, 900.0), calls=7))

    # 2,000 FLOP in 500 ns are 4 GFLOP/s. Quartiles: 450 and 700.
    assert row == {
        "group": "gemm", "run": "torch.mm", "place": "host", "dtype": "fp32", "parameters": {"m": 10, "n": 10, "k": 10},
        "unit": "FLOP/s", "value": 4e9, "repeats": 3, "calls": 7, "median_ns": 500, "least_ns": 400, "spread_ns": 250,
    }  # fmt: skip


def test_a_time_is_its_own_value() -> None:
    work = Work("overhead", "torch.add", "host", "fp32", {}, "ns")

    assert row_of(work, Timing((400.0, 500.0, 900.0), calls=7))["value"] == 500.0
