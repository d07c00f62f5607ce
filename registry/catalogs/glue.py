"""AWS Glue's Data Catalog, which Athena, EMR, Redshift and Spark read."""

from __future__ import annotations

from dq.contracts.install import require_extras
from dq.registry.catalog import Catalog, CatalogKind, CatalogSettings


def _open(settings: CatalogSettings) -> Catalog:
    with require_extras("The glue catalog needs boto3", "aws"):
        from dq.registry.aws.client import connect
        from dq.registry.aws.glue import Glue
    return Glue(connect(settings.role_arn, settings.catalog_id))


CATALOG = CatalogKind("glue", _open)
