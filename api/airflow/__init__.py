"""dq in Airflow: `DqCheckOperator`, `DqPublishOperator`, and `DqDeliverySensor`, which waits for a product.

Needs the extra `airflow`: Airflow 3.1 or newer, since older versions exclude the SQLAlchemy that dq needs.
"""

from __future__ import annotations

from dq.airflow.operators import DqCheckOperator, DqPublishOperator
from dq.airflow.sensor import DqDeliverySensor
from dq.airflow.trigger import DeliveryTrigger

__all__ = ["DeliveryTrigger", "DqCheckOperator", "DqDeliverySensor", "DqPublishOperator"]
