"""``tracereplay hardware``: the catalogue, one entry of it, and whether files of one's own are in order."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tracereplay.cli.options import AsJson, Debug, Output
from tracereplay.errors import ExitCode

app = typer.Typer(no_args_is_help=True, help="Look at hardware that jobs can be moved to.")

Entry = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A name of the catalogue, or a TOML file.", show_default=False)]
Entries = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="TOML files, or names of the catalogue.", show_default=False)
]
InTheSlots = Annotated[
    str | None, typer.Option("--accelerator", help="Put this accelerator (a name or a file) into the platform's slots.")
]


@app.command("list")
def list_(
    as_json: AsJson = False,
    output: Output = None,
    debug: Debug = False,  # noqa: ARG001 - read by main.run
) -> None:
    """List the platforms and accelerators of the catalogue."""
    from tracereplay.cli.load import write  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.hardware.summary import listing  # noqa: PLC0415
    from tracereplay.report import hardware as view  # noqa: PLC0415
    from tracereplay.report import jsonout  # noqa: PLC0415

    found = listing()
    if as_json:
        why = "a figure that is null is unknown or absent: `tracereplay hardware show NAME` says which"
        write(jsonout.envelope("hardware", [], [why], view.listing_result(found)), output)
    else:
        write(view.listing_text(found), output)


@app.command()
def show(
    entry: Entry,
    accelerator: InTheSlots = None,
    as_json: AsJson = False,
    output: Output = None,
    debug: Debug = False,  # noqa: ARG001 - read by main.run
) -> None:
    """Show every field of an accelerator or a platform: its value, how it is known and from where."""
    from tracereplay.cli.files import refuse_overwriting  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.cli.load import write  # noqa: PLC0415
    from tracereplay.hardware.load import load, load_accelerator, load_platform  # noqa: PLC0415
    from tracereplay.report import hardware as view  # noqa: PLC0415
    from tracereplay.report import jsonout  # noqa: PLC0415

    refuse_overwriting(_files([entry, accelerator]), [output])
    if accelerator is None:
        found = load(entry)
    else:
        found = load_platform(entry).with_accelerator(load_accelerator(accelerator), "chosen with --accelerator")
    if as_json:
        result = view.entry_result(found)
        unknown = [f"{key} is unknown" for key in result["unknown"]]
        write(jsonout.envelope("hardware", [entry], unknown, result), output)
    else:
        write(view.entry_text(found), output)


@app.command()
def validate(
    entries: Entries,
    as_json: AsJson = False,
    output: Output = None,
    debug: Debug = False,  # noqa: ARG001 - read by main.run
) -> int:
    """Check files: units, directions, what does not fit together. One line for each fault, and exit code 3 if there is any."""
    from tracereplay.cli.files import refuse_overwriting  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.cli.load import complain, note, write  # noqa: PLC0415
    from tracereplay.hardware.validation import validate as judge  # noqa: PLC0415
    from tracereplay.report import hardware as view  # noqa: PLC0415
    from tracereplay.report import jsonout  # noqa: PLC0415

    refuse_overwriting(_files(entries), [output])
    verdicts = [judge(entry) for entry in entries]
    faults = [fault.line() for verdict in verdicts for fault in verdict.faults]
    notes = [
        f"{verdict.file}: {key}: no nominal rate is known for this technology: unit and direction are not checked"
        for verdict in verdicts
        for key in verdict.unchecked
    ]
    if as_json:
        write(jsonout.envelope("hardware", entries, notes, view.verdicts_result(verdicts)), output)
    else:
        write(view.verdicts_text(verdicts), output)
        note(notes)
    complain(faults)
    return int(ExitCode.INPUT if faults else ExitCode.OK)


def _files(entries: Sequence[str | None]) -> frozenset[Path]:
    """Those of the entries that are files; the others are names of the catalogue."""
    return frozenset(Path(entry).resolve() for entry in entries if entry is not None and Path(entry).is_file())
