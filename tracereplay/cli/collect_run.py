"""``tracereplay collect run`` and ``trigger``: record a job that knows nothing of it, at once or when somebody asks."""

from pathlib import Path
from typing import Annotated

import typer

from tracereplay.errors import CollectError, UsageError


def run(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    command: Annotated[list[str], typer.Argument(help="The job, as it is started otherwise.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder for the traces and the manifest.")],
    skip: Annotated[int, typer.Option(help="Steps to run before the recording; at least 3.")] = 10,
    steps: Annotated[int, typer.Option(help="Steps to record.")] = 5,
    on_demand: Annotated[bool, typer.Option("--on-demand", help="Record when asked by `collect trigger` or SIGUSR2.")] = False,
    workload: Annotated[
        list[str] | None, typer.Option(help="A fact of the job for the manifest: batch=2048. May be repeated.")
    ] = None,
    platform: Annotated[str | None, typer.Option(help="The hardware that it runs on, as --from names it.")] = None,
    host_name: Annotated[str | None, typer.Option(help="Record the host under this name, not its own.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier recording in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> int:
    """Run a training job of any kind and record a window of its steps on each rank. Its exit code is passed on."""
    # Imported here so that the other verbs start without what only a recording needs.
    from tracereplay.cli import job_recording as view  # noqa: PLC0415
    from tracereplay.cli.load import write  # noqa: PLC0415
    from tracereplay.collectors.run import RunRequest, run_job  # noqa: PLC0415

    facts = dict(_parse_fact(text) for text in workload or [])
    request = RunRequest(tuple(command), out, skip, steps, on_demand, force, host_name, platform, facts)
    result = run_job(request, own_stdout=not as_json)
    if as_json:
        write(view.envelope(out, result), None)
    else:
        view.show(out, result)
    return view.exit_code(result)


def trigger(
    folder: Annotated[Path, typer.Argument(help="The --out of the job.", show_default=False)],
    steps: Annotated[int, typer.Option(help="Steps to record.")] = 5,
    stop: Annotated[bool, typer.Option("--stop", help="End the recording that runs before it is full.")] = False,
) -> None:
    """Ask a job that runs under `collect run --on-demand` for a recording of its next steps."""
    from tracereplay.collectors.hook.asking import ask, ask_to_stop  # noqa: PLC0415 - as above

    if steps < 1:
        raise UsageError(f"--steps is {steps}", hint="it must be at least 1")
    if not (folder / ".parts").is_dir():
        raise CollectError(
            "no job waits to be asked there",
            where=str(folder),
            hint="start it with `tracereplay collect run --on-demand --out`",
        )
    try:
        if stop:
            window = _latest(folder)
            ask_to_stop(window)
            typer.echo(f"Asked the recording in {window} to end")
            return
        typer.echo(f"Asked for {steps} steps; they will be in {ask(folder, steps)}")
    except OSError as error:
        raise CollectError(f"cannot write there ({error.strerror})", where=str(folder)) from error


def _latest(folder: Path) -> Path:
    numbers = [int(entry.name) for entry in folder.iterdir() if entry.is_dir() and entry.name.isdigit()]
    if not numbers:
        raise CollectError("no recording runs there", where=str(folder), hint="leave --stop out to ask for one")
    return folder / str(max(numbers))


def _parse_fact(text: str) -> tuple[str, int | float | str]:
    """The name and value of ``batch=2048``; a value that reads as a number is one."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"--workload is {text!r}", hint="write a name and a value, such as batch=2048")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
