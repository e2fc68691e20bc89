"""``tracereplay convert``: traces to a columnar job directory that opens at once."""

from pathlib import Path
from typing import Annotated

import typer

from tracereplay.cli.options import AsJson, Beside, Debug, ManifestFile, Paths, Ranks, Strict, request

Target = Annotated[Path, typer.Option("--output", help="Directory to write.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Anonymize = Annotated[
    bool,
    typer.Option(
        "--anonymize", help="Hash names of modules, files, hosts and users; keep operators, kernels, shapes and times."
    ),
]


def convert(  # noqa: PLR0913, PLR0917 - typer reads a command's options from its parameters
    paths: Paths,
    output: Target,
    anonymize: Anonymize = False,
    force: Force = False,
    ranks: Ranks = None,
    manifest: ManifestFile = None,
    strict: Strict = False,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001 - read by main.run
) -> None:
    """Write the traces of a job as parquet: every verb reads the directory, many times faster than JSON."""
    from tracereplay.cli.load import load_unaligned, note, write  # noqa: PLC0415 - heavy imports only when a verb runs
    from tracereplay.report import jsonout, text  # noqa: PLC0415
    from tracereplay.trace.anonymize import anonymized, anonymized_manifest  # noqa: PLC0415
    from tracereplay.trace.store import stored_bytes, write_job  # noqa: PLC0415

    job = load_unaligned(request(paths, ranks, None, Beside(manifest, None, None, strict, no_cache=True), output=output))
    tables = [(anonymized(t.table) if anonymize else t.table, t.rank) for t in job.ranks]
    shown = job.manifest if job.manifest is None or not anonymize else anonymized_manifest(job.manifest)
    record = None if shown is None else shown.model_dump(mode="json", by_alias=True)
    write_job(tables, output, force=force, manifest=record)
    written = [(t.rank, len(t.table), size) for t, size in zip(job.ranks, stored_bytes(output), strict=True)]
    if as_json:
        result = {"folder": str(output), "ranks": [{"rank": r, "events": n, "size_bytes": s} for r, n, s in written]}
        write(jsonout.envelope("convert", job.files, list(job.warnings), result), None)
    else:
        write(text.converted_text(str(output), written), None)
        note(job.warnings)
