import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch  # after the check: it is an extra
from torch import Tensor, nn

from tracereplay.collectors.dlrm import Batch, BatchSource, build_mlp, build_table, own_tables, seeded_generator
from tracereplay.collectors.exchange import ExchangeLayout
from tracereplay.collectors.job import DlrmConfig, DlrmJob

# Three tables on two ranks, each of another size and pooling: nothing is even.
JOB = DlrmJob(
    config=DlrmConfig(bottom=(5, 6, 4), top=(7, 1), dim=4, table_rows=(11, 3, 8), poolings=(2, 1, 5)),
    ranks=2,
    batch_per_rank=3,
    warmup_steps=1,
    steps=2,
    seed=7,
)
RANK_SCRIPT = Path(__file__).with_name("sharded_rank.py")


@dataclass(frozen=True)
class Unsharded:
    """The same model in one process, written without any of the sharded forward pass."""

    tables: list[nn.EmbeddingBag]
    bottom: nn.Sequential
    top: nn.Sequential

    def parameters(self) -> list[nn.Parameter]:
        parts: list[nn.Module] = [*self.tables, self.bottom, self.top]
        return [weight for part in parts for weight in part.parameters()]

    def logits(self, dense: Tensor, batches: list[Batch]) -> Tensor:
        indices = [each for batch in batches for each in batch.indices]
        offsets = [each for batch in batches for each in batch.offsets]
        lookups = [bag(*inputs) for bag, *inputs in zip(self.tables, indices, offsets, strict=True)]
        vectors = [self.bottom(dense), *lookups]
        pairs = [(vectors[i] * vectors[j]).sum(1, keepdim=True) for i in range(len(vectors)) for j in range(i)]
        logits: Tensor = self.top(torch.cat([vectors[0], *pairs], dim=1))
        return logits.squeeze(1)


def train_unsharded(job: DlrmJob) -> tuple[list[float], Unsharded]:
    config = job.config
    model = Unsharded(
        tables=[build_table(config, table, job.seed) for table in range(config.tables)],
        bottom=build_mlp(config.bottom, seeded_generator(job.seed, "mlp", 0)),
        top=build_mlp((config.interaction_width, *config.top), seeded_generator(job.seed, "mlp", 1)),
    )
    sources = [BatchSource(job, rank) for rank in range(job.ranks)]
    optimizer = torch.optim.SGD(model.parameters(), lr=job.learning_rate)
    losses = []
    for _ in range(job.steps):
        batches = [source.draw() for source in sources]
        optimizer.zero_grad()
        logits = model.logits(torch.cat([batch.dense for batch in batches]), batches)
        labels = torch.cat([batch.labels for batch in batches])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses, model


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, Tensor]]]:
    folder = tmp_path_factory.mktemp("sharded")
    # "-c" puts the current folder on the path, as "python -m pytest" does: the ranks import the same project.
    command = [sys.executable, "-c", RANK_SCRIPT.read_text(), json.dumps(JOB.to_json())]
    ranks = [subprocess.Popen([*command, str(rank), str(folder)]) for rank in range(JOB.ranks)]
    assert [process.wait(60) for process in ranks] == [0, 0]
    return [torch.load(folder / f"rank{rank}.pt") for rank in range(JOB.ranks)]


def test_sharded_loss_is_the_mean_over_the_global_batch(sharded: list[dict[str, dict[str, Tensor]]]) -> None:
    losses, _ = train_unsharded(JOB)

    means = torch.tensor([rank["losses"] for rank in sharded]).mean(0)

    torch.testing.assert_close(means, torch.tensor(losses))


def test_sharded_tables_get_the_gradients_of_the_unsharded_model(
    sharded: list[dict[str, dict[str, Tensor]]],
) -> None:
    _, model = train_unsharded(JOB)

    # Two of the three tables live on rank 0.
    first, second = sharded[0]["weights"], sharded[1]["weights"]
    torch.testing.assert_close(first["tables.0.weight"], model.tables[0].weight.detach())
    torch.testing.assert_close(first["tables.1.weight"], model.tables[1].weight.detach())
    torch.testing.assert_close(second["tables.0.weight"], model.tables[2].weight.detach())


@pytest.mark.parametrize("rank", [0, 1])
def test_every_rank_holds_the_mlps_of_the_unsharded_model(sharded: list[dict[str, dict[str, Tensor]]], rank: int) -> None:
    _, model = train_unsharded(JOB)

    weights = sharded[rank]["weights"]
    torch.testing.assert_close(weights["bottom.module.0.weight"], model.bottom.state_dict()["0.weight"])
    torch.testing.assert_close(weights["top.module.2.bias"], model.top.state_dict()["2.bias"])


def test_training_moves_the_tables(sharded: list[dict[str, dict[str, Tensor]]]) -> None:
    start = build_table(JOB.config, 0, JOB.seed).weight

    assert not torch.equal(sharded[0]["weights"]["tables.0.weight"], start)


def test_exchange_volume_follows_from_batch_tables_and_dim() -> None:
    # 3 samples x 4 dims x the tables owned: rank 0 owns two, rank 1 one.
    first = ExchangeLayout(tables_per_rank=(2, 1), batch_per_rank=3, dim=4, rank=0)
    second = ExchangeLayout(tables_per_rank=(2, 1), batch_per_rank=3, dim=4, rank=1)

    assert first.send_splits == [24, 24]
    assert second.send_splits == [12, 12]
    assert first.receive_splits == second.receive_splits == [24, 12]


def test_a_rank_draws_the_global_batch_for_its_own_tables_only() -> None:
    batch = BatchSource(JOB, rank=0).draw()

    assert own_tables(JOB, 0) == (0, 1)
    assert batch.dense.shape == (3, 5)
    assert [len(each) for each in batch.indices] == [12, 6]
    assert [each.tolist() for each in batch.offsets] == [[0, 2, 4, 6, 8, 10], [0, 1, 2, 3, 4, 5]]


def test_the_same_seed_draws_the_same_batches() -> None:
    one, other = BatchSource(JOB, 1), BatchSource(JOB, 1)

    assert torch.equal(one.draw().indices[0], other.draw().indices[0])
    assert torch.equal(one.draw().dense, other.draw().dense)
