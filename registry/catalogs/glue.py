"""AWS Glue's Data Catalog, which Athena, EMR, Redshift and Spark read."""

from __future__ import annotations

from dq.contracts.shared.errors import MissingTool
from dq.contracts.shared.install import install_command
from dq.registry.catalog import Catalog, CatalogKind, CatalogSettings


def _open(settings: CatalogSettings) -> Catalog:
    try:
        import boto3  # noqa: F401  # only to tell its absence apart from an AWS that does not answer
    except ModuleNotFoundError as error:
        raise MissingTool(
            "The glue catalog needs boto3, which is not installed.", install_command("aws")
        ) from error
    from dq.registry.glue.client import connect
    from dq.registry.glue.tables import Glue

    return Glue(connect(settings.role_arn, settings.catalog_id))


CATALOG = CatalogKind("glue", _open)
