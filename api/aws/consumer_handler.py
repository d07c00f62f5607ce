"""Function of the stack that `dq link --emit-stack` prints: `dq link --apply --prune` in AWS Lambda."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping

from dq.operations.link import link
from dq.registry.consumer_stack import scope_from_environment

_LOG = logging.getLogger("dq")
_LOG.setLevel(logging.INFO)


def handler(event: Mapping[str, object], context: object) -> dict[str, object]:  # noqa: ARG001  # Lambda's
    """Link what the owner shares, take back what it no longer shares, and return steps and notes as JSON.

    Everything comes from the environment of the function. An event only starts it: who can send events
    cannot choose owner, tables or reader. Raises the first problem after all tables, so that AWS Lambda
    counts an error, tries again, and sends the event to the dead-letter queue.
    """
    scope = scope_from_environment(os.environ)
    outcome = link(
        *scope.tables,
        owner=scope.owner,
        principal=scope.principal,
        database=scope.database,
        name=scope.name,
        region=scope.region,
        apply=True,
        prune=True,
    )
    result = outcome.as_dict()
    # As JSON, a name cannot begin a line of its own in the log.
    _LOG.info("dq link: %s", json.dumps(result))
    for problem in outcome.problems:
        raise problem
    return result
