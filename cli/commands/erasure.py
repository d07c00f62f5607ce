"""dq erasure"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import PATHS
from dq.contracts.outcome import pluralize
from dq.dataquality.erasure.certificate import Verdict, summary
from dq.operations.erasure import (
    FindErasureOutcome,
    PlannedColumn,
    bytes_by_means,
    find_erasure,
    plan_erasure,
)
from dq.operations.erasure_certificate import (
    ProveErasureOutcome,
    VerifyErasureOutcome,
    prove_erasure,
    verify_erasure,
)

app = typer.Typer(no_args_is_help=True)
_MOST_GAPS = 20
KEYS = typer.Option(
    ..., "--keys", help="File of keys: one per line, or a CSV file with a column named like the identity."
)
IDENTITY = typer.Option(..., "--identity", help="Identity of the keys, e.g. customer.email.")
ALSO = typer.Option(None, "--also", help="Another folder to search, e.g. of quarantined rows. Repeatable.")


@app.callback()
def _group() -> None:
    """Find the rows of people in every physical file of a registry's tables, and prove that they are gone."""


@app.command()
def find(
    paths: list[Path] = PATHS,
    keys: Path = KEYS,
    identity: str = IDENTITY,
    out: Path = typer.Option(..., "--out", help="New folder for the rows; only this user can read it."),
    also: list[str] = ALSO,
    format: output.Format = output.FORMAT,
) -> None:
    """Find the rows of people, for requests to access or erase their data.

    Searches every file below the folders of the tables that have the identity: current files, old snapshots,
    orphans, staged and hidden files, and logs. Parquet is skipped where bounds, dictionaries or Bloom filters
    prove that a key is not there. Keys are not printed; results name them by their position, from 0.

    Exit codes: 0 everything was searched, 2 unusable keys or identity, 3 something could not be searched.

    Example: dq erasure find registry --keys keys.csv --identity customer.email --out hits
    """
    outcome = find_erasure(paths or ["."], keys=keys, identity=identity, out=out, also=also or ())
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        _describe(outcome)
    raise typer.Exit(outcome.exit_code)


def _describe(outcome: FindErasureOutcome) -> None:
    by_role: dict[tuple[str, str], tuple[int, int]] = {}
    for result in outcome.search.files:
        if result.hits:
            files, rows = by_role.get((result.file.table, result.file.role), (0, 0))
            count = result.rows
            by_role[result.file.table, result.file.role] = files + 1, rows + count
    for (table, role), (files, rows) in sorted(by_role.items()):
        output.line(f"{table}  {role}: {pluralize(rows, 'row')} in {pluralize(files, 'file')}")
    for table, path in sorted(outcome.written.items()):
        output.line(f"{table}  rows written to {path}")
    for means, total in bytes_by_means(outcome.search).items():
        output.line(f"  {means}: {pluralize(total['files'], 'file')}, {total['bytes_read']:,} bytes read")
    for gap in outcome.search.gaps[:_MOST_GAPS]:
        output.line(f"  {output.mark(False)} not searched: {gap.table}: {gap.what}: {gap.why}")
    if len(outcome.search.gaps) > _MOST_GAPS:
        output.line(f"  and {len(outcome.search.gaps) - _MOST_GAPS} others, see summary.json")
    output.notes(outcome.findings)
    output.line(
        f"keys: {outcome.search.keys}, rows: {outcome.rows}, not searched: {len(outcome.search.gaps)}"
    )


@app.command()
def plan(
    paths: list[Path] = PATHS,
    identity: str = IDENTITY,
    format: output.Format = output.FORMAT,
) -> None:
    """Show which columns would benefit from Bloom filters, with the settings of their writers.

    Reads the footers of Parquet files, and no rows.

    Exit codes: 0 done, 2 unknown identity, 3 something could not be read.

    Example: dq erasure plan registry --identity customer.email
    """
    outcome = plan_erasure(paths or ["."], identity=identity)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        for column in outcome.columns:
            _describe_column(column)
        for gap in outcome.gaps[:_MOST_GAPS]:
            output.line(f"  {output.mark(False)} not read: {gap.table}: {gap.what}: {gap.why}")
        output.notes(outcome.findings)
    raise typer.Exit(outcome.exit_code)


def _describe_column(column: PlannedColumn) -> None:
    output.line(output.styled(f"{column.table} {column.column}", bold=True))
    output.line(
        f"  {pluralize(column.files, 'Parquet file')}, {column.bytes:,} bytes: {column.with_bloom:,} with a "
        f"Bloom filter, {column.with_dictionary:,} with a dictionary of all values"
    )
    for setting in column.settings:
        output.line(f"  set {setting}")
    if column.reason:
        output.line(f"  no filter needed or possible: {column.reason}")


@app.command()
def prove(
    paths: list[Path] = PATHS,
    keys: Path = KEYS,
    identity: str = IDENTITY,
    before: str = typer.Option(
        None,
        "--before",
        help="Rows that existed before this date (UTC) or time are covered (default: now).",
    ),
    sign: Path = typer.Option(None, "--sign", help="Ed25519 private key in PEM form, to sign with."),
    secret: Path = typer.Option(
        None, "--secret", help="Secret that hides the keys, created if missing (default: KEYS.secret)."
    ),
    also: list[str] = ALSO,
    format: output.Format = typer.Option(
        output.Format.JSON, "--format", help="json: the certificate; text: only its verdict and gaps."
    ),
) -> None:
    """Search all files of all tables for keys, and print a certificate that no row of them is left.

    The certificate is a JSON document with each file and how it was cleared. The keys are in it as digests,
    which cannot be guessed without the secret. Keep the secret with the keys.

    With --before, the certificate is for rows that existed before that time. Files written later are searched
    as well, because compaction carries old rows into new files, and rows found in them count.

    Exit codes: 0 proven, 1 rows were found, 2 invalid options, or a library is missing, 3 not proven:
    something could not be searched, or a contract could not be read.

    Example: dq erasure prove registry --keys keys.csv --identity customer.email --sign key.pem > proof.json
    """
    outcome = prove_erasure(
        paths or ["."],
        keys=keys,
        identity=identity,
        before=before,
        sign=sign,
        secret=secret,
        also=also or (),
    )
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    for line in _prove_lines(outcome):
        (output.note if format is output.Format.JSON else output.line)(line)
    raise typer.Exit(outcome.exit_code)


def _prove_lines(outcome: ProveErasureOutcome) -> list[str]:
    stated = summary(outcome.certificate)
    searched = f"{pluralize(stated.file_count, 'file')} of {pluralize(stated.table_count, 'table')}"
    keys = pluralize(stated.key_count, "key")
    if stated.verdict is Verdict.PROVEN:
        lines = [f"Proven: {searched} have no row of {keys}."]
    elif stated.verdict is Verdict.HITS:
        lines = [f"Rows of {keys} were found in {searched}:"]
        lines += [
            f"  {hits.path} ({hits.role}): {pluralize(hits.rows, 'row')}" for hits in stated.hits[:_MOST_GAPS]
        ]
    else:
        lines = [f"Not proven for {keys}: {searched} were searched, but not all."]
    lines += [f"  not searched: {gap.what}: {gap.why}" for gap in stated.gaps[:_MOST_GAPS]]
    lines += [] if stated.is_signed else ["The certificate is not signed: pass --sign."]
    return [*lines, f"Secret of the keys: {outcome.secret}"]


@app.command()
def verify(
    certificate: Path = typer.Argument(..., help="Certificate of 'dq erasure prove'."),
    key: Path = typer.Option(None, "--key", help="Public key of the issuer in PEM form."),
    keys: Path = typer.Option(None, "--keys", help="File of keys that must be covered."),
    secret: Path = typer.Option(None, "--secret", help="Secret of the keys (default: KEYS.secret)."),
    identity: str = typer.Option("", "--identity", help="Identity that must be covered."),
    before: str = typer.Option(
        None, "--before", help="Date (UTC) or time until which rows must be covered, that of the request."
    ),
    registry: list[Path] = typer.Option(
        [], "--registry", help="Contracts whose tables must be those of the certificate, as they are now."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Verify a certificate: signature, form, and optionally request and lake.

    A certificate that was changed, is for another request, or describes another state of the tables is
    refused, with the reason. With --registry, each file must still exist with its size and checksum, none may
    be added, and the current snapshots must be those of the certificate.

    Exit codes: 0 valid, and the erasure is proven; 1 refused, or rows were found; 2 invalid options, or a
    library is missing; 3 the issuer is unknown without --key, the certificate itself proves nothing, or a
    file cannot be read.

    Example: dq erasure verify proof.json --key issuer.pub --keys keys.csv --registry registry
    """
    outcome = verify_erasure(
        certificate,
        key=key,
        keys=keys,
        secret=secret,
        identity=identity,
        before=before,
        registry=list(registry) or None,
    )
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        for line in _verify_lines(outcome):
            output.line(line)
    raise typer.Exit(outcome.exit_code)


def _verify_lines(outcome: VerifyErasureOutcome) -> list[str]:
    if outcome.problems:
        return [output.styled("Refused:", bold=True), *(f"  {problem}" for problem in outcome.problems)]
    stated = summary(outcome.certificate)
    files, tables = pluralize(stated.file_count, "file"), pluralize(stated.table_count, "table")
    keys = pluralize(stated.key_count, "key")
    subject = "Valid" if outcome.is_signature_checked else "Well-formed, but of an unknown issuer"
    return [
        output.styled(f"{subject}: {stated.verdict}.", bold=True),
        f"  {keys} of {stated.identity}, in {files} of {tables}",
        f"  rows that existed before {stated.before}, issued {stated.issued_at}",
        *(f"  gap: {gap.what}: {gap.why}" for gap in stated.gaps[:_MOST_GAPS]),
        *(f"  not checked: {text}" for text in outcome.unchecked),
    ]
