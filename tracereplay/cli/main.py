"""The program: verbs, and the one place where errors become a line and an exit code."""

import sys
import traceback
from typing import Annotated

import typer

from tracereplay import __version__
from tracereplay.cli import attribute, collect, convert, graph, hardware, info, replay, sweep, synth, whatif, why
from tracereplay.errors import ExitCode, TracereplayError

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
app.command()(info.info)
app.command()(replay.replay)
app.command()(whatif.whatif)
app.command()(sweep.sweep)
app.command()(attribute.attribute)
app.command()(why.why)
app.command()(graph.graph)
app.command()(convert.convert)
app.add_typer(hardware.app, name="hardware")
app.add_typer(synth.app, name="synth")
app.add_typer(collect.app, name="collect")

# typer carries its own copy of click and does not export the root of its errors; BadParameter derives from it.
_CLICK_ERROR = typer.BadParameter.__mro__[2]


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"tracereplay {__version__}\n")
        raise typer.Exit


@app.callback()
def tracereplay(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Replay a training trace on hardware you do not have yet."""
    del version


def run() -> None:
    """Entry point: run the command line, print one line for an error, exit with the contract's code."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str], program: typer.Typer = app) -> int:
    """Run a command line and return its exit code. The only place that catches."""
    debug = "--debug" in arguments
    try:
        status = program(arguments, standalone_mode=False, prog_name="tracereplay")
    except TracereplayError as error:
        return _fail(error.line(), error.exit_code, debug)
    except typer.Abort:
        return _fail("interrupted", 130, debug)
    except Exception as error:  # noqa: BLE001 - the boundary: whatever escapes is our fault and says so
        if isinstance(error, _CLICK_ERROR):
            return _fail(f"{_message(error)}; see `tracereplay --help`", ExitCode.USAGE, debug)
        where = traceback.extract_tb(error.__traceback__)[-1]
        return _fail(
            f"a fault of tracereplay: {type(error).__name__}: {error} ({where.name}, line {where.lineno}); "
            "please report it with the output of --debug",
            ExitCode.FAULT,
            debug,
        )
    return status if isinstance(status, int) else ExitCode.OK


def _message(error: Exception) -> str:
    format_message = getattr(error, "format_message", None)
    return " ".join(str(format_message() if format_message else error).split())


def _fail(line: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"tracereplay: {' '.join(line.split())}\n")
    return int(code)
