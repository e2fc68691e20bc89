"""Whether processes still run: in, their ids; out, those that do."""

import time

import psutil


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def still_running_after(pids: list[int], patience_s: float) -> list[int]:
    deadline = time.monotonic() + patience_s
    while any(is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [pid for pid in pids if is_running(pid)]
