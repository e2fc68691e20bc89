"""Small jobs whose answers can be worked out on paper."""

from tests.fakes.kineto import TraceFile

LAUNCH = "cudaLaunchKernel"
SYNC = "cudaStreamSynchronize"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def late_peer(*, enters: int = 0) -> tuple[TraceFile, TraceFile]:
    """Two ranks with a step up to 200 µs: rank 1 launches the all-reduce 50 µs after rank 0 and is the one waited for.

        rank 0   |launch 10|                 |sync 30 ........................ 125|  |sync 150|     200
                     |20 all-reduce: waits 50, transfers 50 ............. 120|
        rank 1                    |launch 60|     |sync 80 .................. 125|  |sync 150|     200
                                       |70 all-reduce: transfers 50 ..... 120|

    The second synchronisation waits for nothing: 2 µs are what one costs. ``enters`` is where rank 1's step begins.
    """
    first = TraceFile(0, 2).step(1, 0, 200).call(LAUNCH, 10, 5, 1).kernel(ALL_REDUCE, 20, 100, 7, 1).call(SYNC, 30, 95)
    second = TraceFile(1, 2).step(1, enters, 200 - enters).call(LAUNCH, 60, 5, 1).kernel(ALL_REDUCE, 70, 50, 7, 1)
    return first.call(SYNC, 150, 2), second.call(SYNC, 80, 45).call(SYNC, 150, 2)


def waits_longer() -> tuple[TraceFile, TraceFile]:
    """Rank 1 has a kernel of 125 µs in step 1, for which rank 0 waits in the all-reduce of step 2.

    rank 0   |step 1: op a ....... 100|step 2: launch 110 |sync 130 .................. 225|  230
                                              |120 all-reduce: waits 50, transfers 50 . 220|
    rank 1   |step 1: launch 10|sync 15 ........... 147| 150|launch 160|sync 175 ..... 225|  230
                 |20 kernel .................... 145|           |170 all-reduce: 50 .... 220|
    """
    first = TraceFile(0, 2).step(1, 0, 100).op("a", 0, 100).step(2, 100, 130)
    first.call(LAUNCH, 110, 5, 1).kernel(ALL_REDUCE, 120, 100, 7, 1).call(SYNC, 130, 95)
    second = TraceFile(1, 2).step(1, 0, 150).call(LAUNCH, 10, 5, 2).kernel("gemm", 20, 125, 7, 2).call(SYNC, 15, 132)
    second.step(2, 150, 80).call(LAUNCH, 160, 5, 1).kernel(ALL_REDUCE, 170, 50, 7, 1).call(SYNC, 175, 50)
    return first, second


def late_kernel() -> TraceFile:
    """A step of 1,300 µs with five launches on five streams: the last kernel starts 1,000 µs later than the others would."""
    trace = TraceFile(0, 1).step(1, 0, 1300)
    trace.call(LAUNCH, 10, 2, 1).call(LAUNCH, 20, 2, 2).call(LAUNCH, 30, 2, 3).call(LAUNCH, 40, 2, 4).call(LAUNCH, 100, 2, 5)
    trace.kernel("gemm", 20, 5, 1, 1).kernel("gemm", 30, 5, 2, 2).kernel("gemm", 40, 5, 3, 3).kernel("gemm", 60, 5, 4, 4)
    return trace.kernel("gemm", 1110, 50, 5, 5).call(SYNC, 120, 1045).call(SYNC, 1200, 2)


def uneven_ranks() -> tuple[TraceFile, TraceFile, TraceFile]:
    """Three ranks that never wait for each other; each is slow in another way.

        host     |  10  |--a--|  10  |launch 5|5|sync ........|  20  |       sync returns 2 µs after the kernel
        stream                       `-10-|--kernel--|

    Rank 0 has a kernel of 60 µs instead of 30, rank 1 an operator a of 50 µs instead of 20, rank 2 enters 30 µs later and
    runs an operator x of 15 µs between a and the launch, with gaps of 4 and 6 µs around it instead of one of 10 µs.
    Their steps take 132, 132 and 117 µs.
    """
    first = TraceFile(0, 3).step(1, 0, 132).op("a", 10, 20).call(LAUNCH, 40, 5, 1).kernel("gemm", 50, 60, 7, 1)
    second = TraceFile(1, 3).step(1, 0, 132).op("a", 10, 50).call(LAUNCH, 70, 5, 1).kernel("gemm", 80, 30, 7, 1)
    third = TraceFile(2, 3).step(1, 30, 117).op("a", 40, 20).op("x", 64, 15).call(LAUNCH, 85, 5, 1)
    third.kernel("gemm", 95, 30, 7, 1).call(SYNC, 95, 32)
    return first.call(SYNC, 50, 62), second.call(SYNC, 80, 32), third
