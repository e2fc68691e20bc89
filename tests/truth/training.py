"""Random training jobs for the machine: in, a seed; out, the same program for every rank, step after step, with noise.

A job is drawn as a list of segments (layers, side streams, exchanges, graphs, blocking calls); each rank runs them with its
own small deviations, and one rank may be a straggler. Changes scale the same program, so that its second run is what really
would have happened.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.truth.machine import Do, Machine

COMPUTE, SIDE, OTHER_SIDE, EXCHANGE, REDUCE, TENSOR, PIPE = 7, 20, 24, 28, 32, 36, 40
MAIN, BACKWARD, LOADER = "main", "backward", "loader"
GEMM = "volta_sgemm_128x64_tn"
ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>>"
)
LOOKUP = "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, int, 2>"
COPY_IN, COPY_OUT = "Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pageable)"
COPY_PINNED = "Memcpy HtoD (Pinned -> Device)"
ALL_TO_ALL, ALL_REDUCE = "all_to_all", "all_reduce"
_KERNEL_OF = {
    ALL_TO_ALL: "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)",
    ALL_REDUCE: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
    "send": "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)",
    "recv": "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)",
}
_OPERATOR_OF = {
    ALL_TO_ALL: "c10d::alltoall_base_",
    ALL_REDUCE: "c10d::allreduce_",
    "send": "c10d::send",
    "recv": "c10d::recv_",
}


@dataclass(frozen=True)
class Features:
    """What a job may contain."""

    graphs: bool = False
    sides: bool = True
    multi_wait: bool = False
    groups: bool = False
    loader: bool = False
    pipeline: bool = False
    straggler: bool = False


@dataclass(frozen=True)
class Training:
    """A job that can be run again under changes: programs of each rank's threads, process groups, entries in ns."""

    programs: dict[int, dict[str, tuple[Do, ...]]]
    groups: dict[str, tuple[int, ...]]
    entries: dict[int, int]

    def run(self, change: Callable[[Do], Do] | None = None) -> Machine:
        """Run the job, each instruction changed."""
        programs: dict[int, dict[str, Sequence[Do]]] = {
            rank: {thread: tuple(_map(do, change) for do in body) if change else body for thread, body in threads.items()}
            for rank, threads in self.programs.items()
        }
        machine = Machine(self.groups)
        machine.run(programs, self.entries)
        return machine

    def entered_together(self) -> "Training":
        """The job with all ranks entering the first step at one time."""
        return replace(self, entries=dict.fromkeys(self.entries, 0))


def _map(do: Do, change: Callable[[Do], Do]) -> Do:
    return change(replace(do, body=tuple(_map(inner, change) for inner in do.body)))


def scaled_kernel(name: str, factor: float) -> Callable[[Do], Do]:
    """Kernels of one name, ``factor`` times as long."""
    return lambda do: replace(do, ns=round(do.ns * factor)) if do.name == name and do.what == "launch" else do


def scaled_collective(name: str, factor: float) -> Callable[[Do], Do]:
    """The transfers of one kind of collective."""
    return lambda do: replace(do, ns=round(do.ns * factor)) if do.what == "collective" and do.key[2]["name"] == name else do


def scaled_host(factor: float) -> Callable[[Do], Do]:
    """All CPU time of the hosts, calls included; no latency."""

    def change(do: Do) -> Do:
        ns = round(do.ns * factor) if do.what == "work" else do.ns
        return replace(do, ns=ns, cost_ns=round(do.cost_ns * factor))

    return change


def without_straggler(do: Do) -> Do:
    """The job without the extra work of its straggler."""
    return replace(do, ns=0) if do.what == "work" and do.name == "extra" else do


class _Draw:
    """Draws a job's structure once, then writes it for each rank and step."""

    def __init__(self, seed: int, features: Features) -> None:
        self.rng = random.Random(seed)
        self.features = features
        # Of two ranks neither is the straggler: their median lies between them.
        fewest = 4 if features.groups else 3 if features.straggler else 2
        self.ranks = self.rng.randint(fewest, 4)
        self.gpu = self.rng.choice([0.3, 1.0, 3.0])
        self.straggler = self.rng.randrange(self.ranks) if features.straggler else -1
        self.extra_ns = self.rng.randrange(4_000_000, 12_000_000)
        self.groups = {"0": tuple(range(self.ranks))}
        if features.groups:
            self.groups |= {"1": (0, 1), "2": (2, 3)}
        if features.pipeline:
            self.groups |= {f"p{r}": (r, r + 1) for r in range(self.ranks - 1)}
        kinds = ["linear", "linear", "lookup", "exchange", "item"]
        kinds += ["side"] * features.sides + ["multi"] * features.multi_wait + ["graph", "leaf"] * features.graphs
        kinds += ["tensor"] * features.groups + ["pipe"] * features.pipeline
        self.forward = [*kinds, *self.rng.choices([*kinds, "free", "stream_sync"], k=self.rng.randrange(3, 7))]
        self.rng.shuffle(self.forward)
        self.backward = ["linear"] * self.rng.randrange(3, 6)
        self.ending = self.rng.choice(["device_sync", "item", "event_sync"])
        self.shapes = [self.rng.random() for _ in range(4096)]

    def write(self) -> Training:
        programs = {r: _Rank(self, r, random.Random(self.rng.random())).threads() for r in range(self.ranks)}
        entries = {r: self.rng.randrange(0, 3_000_000) for r in range(self.ranks)}
        return Training(programs, self.groups, entries)


def draw_training(seed: int, features: Features, steps: int = 2) -> Training:
    """The job of a seed."""
    _Rank.steps = steps
    return _Draw(seed, features).write()


class _Rank:
    """Writes one rank's program: the drawn structure with this rank's deviations."""

    steps = 2

    def __init__(self, draw: _Draw, rank: int, rng: random.Random) -> None:
        self.draw, self.rank, self.rng = draw, rank, rng
        self.seq: dict[str, int] = {}
        self.step = 0
        self.place = 0

    def threads(self) -> dict[str, tuple[Do, ...]]:
        main: list[Do] = []
        backward: list[Do] = []
        loader: list[Do] = []
        for step in range(self.steps):
            self.step, self.place = step, 0
            body, behind = self._step()
            main.append(Do("event", f"ProfilerStep#{step + 3}", key="user_annotation", body=tuple(body)))
            main.append(self._work(3_000))
            backward += behind
            if self.draw.features.loader:
                loader += self._batch()
        return {MAIN: tuple(main), BACKWARD: tuple(backward), LOADER: tuple(loader)}

    # -- small parts ----------------------------------------------------------------------------------------------------

    def _shape(self) -> float:
        """The next number that all ranks and steps share."""
        self.place += 1
        return self.draw.shapes[self.place % len(self.draw.shapes)]

    def _near(self, ns: float) -> int:
        return max(round(ns * self.rng.gauss(1, 0.02)), 200)

    def _work(self, ns: float) -> Do:
        return Do("work", ns=self._near(ns))

    def _host(self) -> Do:
        return self._work(2_000 + 14_000 * self._shape())

    def _op(self, name: str, *body: Do) -> Do:
        return Do("event", name, key="cpu_op", body=body)

    def _do(self, what: str, **fields: object) -> Do:
        return Do(what, noise=self.rng.random(), cost_ns=self._near(4_000), **fields)  # type: ignore[arg-type]

    def _kernel(self, name: str, stream: int = COMPUTE, scale: float = 1.0) -> Do:
        ns = (4_000 + 120_000 * self._shape() ** 2) * self.draw.gpu * scale
        return self._do("launch", name=name, ns=self._near(ns), stream=stream)

    def _simple(self, operator: str, kernel: str, stream: int = COMPUTE) -> Do:
        return self._op(operator, self._host(), self._kernel(kernel, stream), self._work(1_500))

    def _event(self, name: str) -> tuple[int, int, str]:
        return (self.step, self.place, name)

    # -- a step ---------------------------------------------------------------------------------------------------------

    def _step(self) -> tuple[list[Do], list[Do]]:
        body = [self._work(5_000)]
        if self.draw.features.loader:
            body += [self._do("take", key=("batch", self.step)), self._simple("aten::to", COPY_PINNED)]
        for kind in self.draw.forward:
            body += [*getattr(self, f"_{kind}")(), self._host()]
        if self.rank == self.draw.straggler:
            body.append(self._op("my::augment", Do("work", "extra", ns=self.draw.extra_ns), self._work(2_000)))
        elif self.draw.straggler >= 0:
            body.append(self._op("my::augment", self._work(2_000)))
        behind = self._backward()
        body += [self._do("give", key=("go", self.step)), self._do("take", key=("done", self.step))]
        body += [*self._wait_for_reduction(), self._simple("Optimizer.step#SGD.step", ELEMENTWISE), self._host()]
        body += getattr(self, f"_{self.draw.ending}")()
        return body, behind

    def _linear(self) -> list[Do]:
        inner = self._op("aten::addmm", self._host(), self._kernel(GEMM), self._work(2_000))
        relu = self._simple("aten::relu", ELEMENTWISE)
        return [self._op("aten::linear", self._host(), inner, self._work(1_000)), self._host(), relu]

    def _lookup(self) -> list[Do]:
        return [self._op("fbgemm::split_embedding_codegen_lookup", self._host(), self._kernel(LOOKUP, scale=2), self._host())]

    def _side(self, stream: int = SIDE) -> list[Do]:
        """Work on a side stream after the compute stream, and the compute stream after it."""
        start, end = self._event("start"), self._event("end")
        there = [self._do("record", key=start, stream=COMPUTE), self._do("await", key=start, stream=stream)]
        work = [self._simple("aten::mul", ELEMENTWISE, stream), self._simple("aten::mm", GEMM, stream)]
        between = [self._simple("aten::add", ELEMENTWISE)]
        back = [self._do("record", key=end, stream=stream), *between, self._do("await", key=end, stream=COMPUTE)]
        return [*there, *work, *back, self._simple("aten::add_", ELEMENTWISE)]

    def _multi(self) -> list[Do]:
        """Two side streams that the next compute kernel waits for, by two waits before it."""
        start, one, two = self._event("start"), self._event("one"), self._event("two")
        doing = [self._do("record", key=start, stream=COMPUTE)]
        for stream, end in ((SIDE, one), (OTHER_SIDE, two)):
            doing += [self._do("await", key=start, stream=stream), self._simple("aten::bmm", GEMM, stream)]
            doing.append(self._do("record", key=end, stream=stream))
        doing += [self._do("await", key=one, stream=COMPUTE), self._do("await", key=two, stream=COMPUTE)]
        return [*doing, self._simple("aten::cat", ELEMENTWISE)]

    def _collective(self, name: str, group: str, stream: int, ns: float) -> tuple[Do, tuple[int, int, str]]:
        """A collective as NCCL's process group enqueues it: after the compute stream, on a stream of its own."""
        self.place += 1
        ready, done = self._event("ready"), self._event("done")
        self.seq[group] = self.seq.get(group, 0) + 1
        args = {"name": name, "nelems": 1 << 16}
        launch = self._do("collective", name=_KERNEL_OF[name], ns=round(ns), stream=stream, key=(group, self.seq[group], args))
        enqueue = [self._do("record", key=ready, stream=COMPUTE), self._do("await", key=ready, stream=stream), launch]
        body = [self._host(), *enqueue, self._do("record", key=done, stream=stream), self._work(2_000)]
        return self._op(_OPERATOR_OF[name], *body), done

    def _exchange(self) -> list[Do]:
        call, done = self._collective(ALL_TO_ALL, "0", EXCHANGE, (30_000 + 400_000 * self._shape()) * self.draw.gpu)
        between = self._linear() if self._shape() > 0.5 else []
        return [call, *between, self._do("await", key=done, stream=COMPUTE), self._simple("aten::cat", ELEMENTWISE)]

    def _tensor(self) -> list[Do]:
        group = "1" if self.rank < 2 else "2"
        call, done = self._collective(ALL_REDUCE, group, TENSOR, 20_000 + 60_000 * self._shape())
        return [call, self._do("await", key=done, stream=COMPUTE), *self._linear()]

    def _pipe(self) -> list[Do]:
        """A neighbour's message: even places go up the ranks, one pair at a time."""
        out: list[Do] = []
        ns = 20_000 + 60_000 * self._shape()
        for low in range(self.draw.ranks - 1):
            if self.rank in (low, low + 1):
                call, done = self._collective("send" if self.rank == low else "recv", f"p{low}", PIPE + low, ns)
                out.append(call)
                if self.rank > low:
                    out.append(self._do("await", key=done, stream=COMPUTE))
            else:
                self.place += 1  # ranks that take no part keep in step with the numbers of those that do
        return [*out, self._simple("aten::add", ELEMENTWISE)]

    def _graph(self) -> list[Do]:
        start = self._event("fork")
        nodes = [self._graph_node(GEMM, COMPUTE, start), Do("await", key=start, stream=SIDE, noise=self.rng.random())]
        ends = [self._event("left"), self._event("right")]
        nodes += [self._graph_node(ELEMENTWISE, SIDE, ends[0]), self._graph_node(GEMM, COMPUTE, ends[1])]
        nodes.append(Do("await", key=ends[0], stream=COMPUTE, noise=self.rng.random()))
        nodes += [self._graph_node(ELEMENTWISE, COMPUTE, self._event(f"n{i}")) for i in range(4)]
        return [self._op("my::graphed", self._host(), self._do("graph", body=tuple(nodes)), self._work(1_000))]

    def _leaf(self) -> list[Do]:
        """A graph with a branch that nothing in it waits for: only what comes behind the graph does."""
        start, leaf = self._event("fork"), self._event("leaf")
        nodes = [self._graph_node(GEMM, COMPUTE, start), Do("await", key=start, stream=SIDE, noise=self.rng.random())]
        nodes += [self._graph_node(ELEMENTWISE, SIDE, leaf), self._graph_node(GEMM, COMPUTE, self._event("end"))]
        graph = self._op("my::graphed", self._host(), self._do("graph", body=tuple(nodes)), self._work(1_000))
        return [graph, self._simple("aten::add", ELEMENTWISE)]

    def _graph_node(self, name: str, stream: int, key: tuple[int, int, str]) -> Do:
        kernel = self._kernel(name, stream)
        return replace(kernel, key=key)

    def _item(self) -> list[Do]:
        copy = self._do("launch", name="Memcpy DtoH (Device -> Pinned)", ns=self._near(1_500), key="cudaMemcpyAsync")
        wait = self._do("sync", name="cudaStreamSynchronize", streams=(COMPUTE,))
        return [self._op("aten::item", self._op("aten::_local_scalar_dense", self._host(), copy, wait, self._work(1_500)))]

    def _free(self) -> list[Do]:
        return [self._op("aten::empty", self._do("sync", name="cudaFree"), self._work(1_000))]

    def _stream_sync(self) -> list[Do]:
        return [self._do("sync", name="cudaStreamSynchronize", streams=(COMPUTE,))]

    def _device_sync(self) -> list[Do]:
        return [self._do("sync", name="cudaDeviceSynchronize"), self._work(2_000)]

    def _event_sync(self) -> list[Do]:
        key = self._event("last")
        return [
            self._do("record", key=key, stream=COMPUTE),
            self._host(),
            self._do("sync", name="cudaEventSynchronize", key=key),
        ]

    # -- other threads --------------------------------------------------------------------------------------------------

    def _backward(self) -> list[Do]:
        body = [self._do("take", key=("go", self.step))]
        for number, _ in enumerate(self.draw.backward):
            inner = [self._host(), self._simple("aten::mm", GEMM), self._simple("aten::mul", ELEMENTWISE), self._work(2_000)]
            body += [self._op("autograd::engine::evaluate_function: AddmmBackward0", *inner), self._work(4_000)]
            if number % 2:
                call, self.reduced = self._collective(
                    ALL_REDUCE, "0", REDUCE, (40_000 + 200_000 * self._shape()) * self.draw.gpu
                )
                body.append(self._op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", call))
        return [*body, self._do("give", key=("done", self.step))]

    def _wait_for_reduction(self) -> list[Do]:
        return [self._host(), self._do("await", key=self.reduced, stream=COMPUTE)]

    def _batch(self) -> list[Do]:
        work = self._work(1_500_000 * self.draw.shapes[0] + 300_000)
        pin = self._op("aten::_pin_memory", work)
        return [pin, self._do("give", key=("batch", self.step)), self._work(5_000)]
