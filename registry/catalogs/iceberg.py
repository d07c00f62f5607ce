"""Catalogs with Iceberg's REST protocol, e.g. Polaris, Nessie, Lakekeeper, Gravitino or S3 Tables."""

from __future__ import annotations

from dq.contracts.install import require_extras
from dq.contracts.outcome import UsageError
from dq.registry.catalog import Catalog, CatalogKind, CatalogSettings


def _open(settings: CatalogSettings) -> Catalog:
    with require_extras("The iceberg catalog needs pyiceberg", "iceberg"):
        # distinguishes a missing pyiceberg from a catalog that does not answer
        import pyiceberg  # noqa: F401
    from strictyaml import YAMLError

    try:
        from dq.registry.iceberg import Iceberg, connect
    except YAMLError as error:
        # pyiceberg looks for it on import, also in the working folder. dq does not use it.
        raise UsageError(
            "A file .pyiceberg.yaml cannot be read: it is not valid YAML.",
            "Remove it from the working folder, or fix the one in your home directory.",
        ) from error

    return Iceberg(*connect(settings.iceberg))


CATALOG = CatalogKind("iceberg", _open, is_case_sensitive=True)
