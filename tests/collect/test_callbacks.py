"""Callbacks for Lightning and Hugging Face's Trainer, with the real packages where they are installed."""

import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tracereplay.manifest import read_manifest


@pytest.mark.filterwarnings("ignore")
def test_lightning_counts_two_optimizers_as_one_step(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lightning = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")
        from tracereplay.collectors.lightning_callback import CollectCallback

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False
            self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, _index: int) -> None:
            optimizers = self.optimizers()
            self.manual_backward(self.second(self.first(batch[0])).mean())
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()

        def configure_optimizers(self) -> list[Any]:
            return [torch.optim.SGD(part.parameters(), 0.1) for part in (self.first, self.second)]

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(96, 4)), batch_size=8)
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[CollectCallback(tmp_path / "run", skip=4, steps=3)],
    )  # fmt: skip
    trainer.fit(Model(), loader)

    manifest = read_manifest(tmp_path / "run" / "manifest.json")
    assert manifest.ranks[0].steps == (4, 5, 6)
    assert manifest.workload["batch_per_rank"] == 8


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_counts_accumulated_batches_as_one_step(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers", reason="transformers is not installed")
        pytest.importorskip("accelerate", reason="accelerate is not installed")
        from tracereplay.collectors.trainer_callback import CollectCallback

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
            logits = self.layer(x).squeeze(-1)
            return {"loss": ((logits - labels) ** 2).mean(), "logits": logits}

    data = [{"x": torch.randn(4), "labels": torch.tensor(1.0)} for _ in range(96)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=10,
        report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    callback = CollectCallback(tmp_path / "run", skip=4, steps=3)
    transformers.Trainer(model=Model(), args=arguments, train_dataset=data, callbacks=[callback]).train()

    manifest = read_manifest(tmp_path / "run" / "manifest.json")
    assert manifest.ranks[0].steps == (4, 5, 6)
    assert manifest.workload == {"batch_per_rank": 4, "accumulated_batches": 2}
