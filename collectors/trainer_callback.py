"""Record a training of Hugging Face's Trainer: in, its events; out, a trace a rank and a manifest (extra ``transformers``).

Trainer(..., callbacks=[CollectCallback("run/")])
"""

from os import PathLike
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from tracereplay.collectors.session import Session, collect


class CollectCallback(TrainerCallback):  # type: ignore[misc] # transformers is not installed where types are checked
    """Records ``steps`` optimizer steps after ``skip`` others; ``options`` are those of ``collectors.session.collect``."""

    def __init__(self, folder: str | PathLike[str], **options: Any) -> None:  # Any: passed on as they are
        self._folder = folder
        self._options = options
        self._session: Session | None = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Begin with the first step of this training."""
        workload = {
            "batch_per_rank": args.per_device_train_batch_size,
            "accumulated_batches": args.gradient_accumulation_steps,
        }
        self._session = collect(self._folder, **({"workload": workload} | self._options)).__enter__()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """A step ends when the optimizer has stepped, after all accumulated batches."""
        if self._session is not None:
            self._session.step()

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Write what there is."""
        session, self._session = self._session, None
        if session is not None:
            session.__exit__(None, None, None)
