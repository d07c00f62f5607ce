"""Catalogs that speak Iceberg's REST protocol: Polaris, Nessie, Lakekeeper, Gravitino, S3 Tables and such."""

from __future__ import annotations

from dq.contracts.install import needing
from dq.contracts.outcome import UsageError
from dq.registry.catalog import Catalog, CatalogKind, CatalogSettings


def _open(settings: CatalogSettings) -> Catalog:
    with needing("The iceberg catalog needs pyiceberg", "iceberg"):
        import pyiceberg  # noqa: F401  # only to tell its absence apart from a catalog that does not answer
    from strictyaml import YAMLError

    try:
        from dq.registry.iceberg import Iceberg, connect
    except YAMLError as error:
        # pyiceberg looks for it while it is imported, in the working folder too; nothing of it is used.
        raise UsageError(
            "A file .pyiceberg.yaml cannot be read: it is no YAML.",
            "Remove it from the working folder, or mend the one in your home.",
        ) from error

    return Iceberg(*connect(settings.iceberg))


CATALOG = CatalogKind("iceberg", _open)
