"""Signals that end a process unwind the stack, or wait until a block is through."""

import os
import signal

import pytest

from tracereplay.signals import held_back, terminate_as_exit


def told(number: signal.Signals, log: list[str]) -> None:
    try:
        os.kill(os.getpid(), number)
        log.append("after the signal")
    finally:
        log.append("on the way out")


def test_a_signal_to_end_unwinds_the_stack_and_the_former_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    left: list[str] = []

    with pytest.raises(SystemExit, match="143"), terminate_as_exit():
        told(signal.SIGTERM, left)

    assert left == ["on the way out"]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(("number", "ending"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)])
def test_a_signal_waits_until_the_block_is_through(number: signal.Signals, ending: type[BaseException]) -> None:
    done: list[str] = []

    with pytest.raises(ending), terminate_as_exit(), held_back():
        told(number, done)

    assert done == ["after the signal", "on the way out"]


def test_without_a_signal_nothing_happens() -> None:
    with terminate_as_exit(), held_back():
        pass
