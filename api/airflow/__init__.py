"""dq in Airflow 2.10 to 3.x: operators, and `DqDeliverySensor`, which waits for a product.

Imports only Airflow and the standard library. dq may be installed here without its dependencies (`pip install
--no-deps`) and run in an environment of its own, which `python=` names.
"""

from __future__ import annotations

from dq.airflow.emr_serverless import DqEmrServerlessOperator, EmrServerlessTrigger
from dq.airflow.operators import DqCheckOperator, DqPublishOperator
from dq.airflow.sensor import DqDeliverySensor
from dq.airflow.trigger import DeliveryTrigger

__all__ = [
    "DeliveryTrigger", "DqCheckOperator", "DqDeliverySensor", "DqEmrServerlessOperator", "DqPublishOperator",
    "EmrServerlessTrigger",
]  # fmt: skip
