"""Record a Lightning training: in, a Trainer's events; out, a trace a rank and a manifest (extra ``lightning``).

Trainer(callbacks=[CollectCallback("run/")])
"""

from os import PathLike
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from tracereplay.collectors.session import Session, collect


class CollectCallback(Callback):  # type: ignore[misc] # lightning is not installed where types are checked
    """Records ``steps`` optimizer steps after ``skip`` others; ``options`` are those of
    ``tracereplay.collectors.session.collect``.
    """

    def __init__(self, folder: str | PathLike[str], **options: Any) -> None:  # Any: passed on as they are
        super().__init__()
        self._folder = folder
        self._options = options
        self._session: Session | None = None
        self._steps = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin with the first step of this training."""
        batch = getattr(trainer.train_dataloader, "batch_size", None)
        options = {
            "workload": {"batch_per_rank": batch, "accumulated_batches": trainer.accumulate_grad_batches}
        } | self._options
        self._steps = trainer.global_step
        self._session = collect(self._folder, **options).__enter__()

    def on_train_batch_end(self, trainer: Trainer, *_: object) -> None:
        """A step ends with each batch after which an optimizer has stepped; several optimizers are one step."""
        if self._session is not None and trainer.global_step != self._steps:
            self._steps = trainer.global_step
            self._session.step()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write what there is."""
        self._end()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Write what there is."""
        self._end(exception)

    def _end(self, error: BaseException | None = None) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.__exit__(None if error is None else type(error), error, None)
