"""What ``hardware calibrate`` does where torch is: in, words of the command line; out, a measurement file, a bar meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tracereplay.collectors.calibrate import CalibrationRequest, calibrate
from tracereplay.collectors.protocol import Kind, Message


def measure(file: Path, *, quick: bool, ranks: int | None, host_name: str | None) -> tuple[str, ...]:
    """Measure this machine; gives what the workers wrote to stderr."""
    request = CalibrationRequest(file, quick, ranks, host_name)
    with _progress() as on_message:
        return calibrate(request, on_message)


@contextmanager
def _progress() -> Iterator[Callable[[Message], None]]:
    """What is being measured, on stderr where somebody looks at it."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)

        def on_message(message: Message) -> None:
            if message.kind is Kind.STEP and message.what is not None:
                bar.update(task, description=message.what)

        yield on_message
