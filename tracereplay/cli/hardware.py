"""``tracereplay hardware``: the catalogue, one entry of it, files of one's own, and one of this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tracereplay.cli.options import AsJson, Debug, Output
from tracereplay.errors import ExitCode, UsageError

app = typer.Typer(no_args_is_help=True, help="Look at hardware that jobs can be moved to, or measure this one.")

Entry = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A name of the catalogue, or a TOML file.", show_default=False)]
Entries = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="TOML files, or names of the catalogue.", show_default=False)
]
InTheSlots = Annotated[
    str | None, typer.Option("--accelerator", help="Put this accelerator (a name or a file) into the platform's slots.")
]
PlatformFile = Annotated[Path, typer.Option("--output", help="Write the platform there; the measurements go beside it.")]
Quick = Annotated[bool, typer.Option("--quick", help="Measure for about 20 seconds instead of 90.")]
RanksOfIt = Annotated[
    int | None,
    typer.Option("--ranks", help="Ranks of the collectives; 1 leaves them out.", show_default="one a GPU or core, at most 8"),
]
Inherits = Annotated[
    str | None, typer.Option("--inherits", help="Take what is not measured from this platform (a name or a file).")
]
FromMeasurements = Annotated[
    Path | None, typer.Option("--from-measurements", help="Measure nothing: make the platform from this measurement file.")
]
HostName = Annotated[str | None, typer.Option("--host-name", help="Record the host under this name, not its own.")]


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
        if (why := view.unwired(found)) is not None:
            unknown.append(f"no topology: {why}")
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


@app.command()
def calibrate(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    output: PlatformFile = Path("calibrated.toml"),
    quick: Quick = False,
    ranks: RanksOfIt = None,
    inherits: Inherits = None,
    from_measurements: FromMeasurements = None,
    host_name: HostName = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001 - read by main.run
) -> None:
    """Measure this machine and write it down as a platform: processor or GPUs, memory, lookups, collectives. Needs torch."""
    from tracereplay.cli.calibration import measure  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.cli.load import note, write  # noqa: PLC0415
    from tracereplay.hardware.measurements import read_measurements  # noqa: PLC0415
    from tracereplay.hardware.platform_file import parent_of, platform_name, write_platform  # noqa: PLC0415
    from tracereplay.report import hardware as view  # noqa: PLC0415
    from tracereplay.report import jsonout  # noqa: PLC0415

    platform_name(output)  # what can be refused is refused before anything is measured
    parent_of(output, inherits)
    words: tuple[str, ...] = ()
    if from_measurements is None:
        measured_in = output.with_suffix(".measurements.json")
        words = measure(measured_in, quick=quick, ranks=ranks, host_name=host_name)
    elif quick or ranks is not None or host_name is not None:
        raise UsageError("--from-measurements measures nothing", hint="leave out --quick, --ranks and --host-name")
    else:
        measured_in = from_measurements
    found = read_measurements(measured_in)
    written = write_platform(found, measured_in.name, output, inherits)
    notes = [*words, *written.notes]
    if as_json:
        write(jsonout.envelope("hardware", [], notes, view.calibration_result(written, found, str(measured_in))), None)
    else:
        write(view.calibration_text(written, found, str(measured_in)), None)
        note(notes)


def _files(entries: Sequence[str | None]) -> frozenset[Path]:
    """Those of the entries that are files; the others are names of the catalogue."""
    return frozenset(Path(entry).resolve() for entry in entries if entry is not None and Path(entry).is_file())
