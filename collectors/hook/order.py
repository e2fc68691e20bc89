"""What a job is asked to record: in, a launcher's order or a caller's arguments; out, an Order, also as one line of the
environment.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VARIABLE = "TRACEREPLAY_JOB"

# The first step that a round of optimizers lets be marked, and one step for the profiler to get ready in (hook.steps).
LEAST_SKIP = 3


@dataclass(frozen=True)
class Order:
    """Record ``steps`` steps after ``skip`` others into ``folder``, or where ``on_demand`` whenever somebody asks.

    ``mail`` is a folder of the launcher's where a rank tells what it cannot tell in ``folder``; ``host`` the name to record the
    host under; ``facts`` what the launcher or the caller knows of the job: fields of the manifest.
    """

    folder: str
    skip: int
    steps: int
    on_demand: bool = False
    mail: str | None = None
    host: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def to_text(self) -> str:
        """The order as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> "Order":
        """The order that ``to_text`` wrote."""
        return cls(**json.loads(text))

    def parts_folders(self) -> tuple[Path, ...]:
        """Where a rank tells of itself: beside the traces, and where that fails with the launcher."""
        mail = () if self.mail is None else (Path(self.mail),)
        return (Path(self.folder), *mail)
