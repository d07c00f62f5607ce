"""A consumer that waits for orders, builds, gates and publishes its own table. For Airflow 2.10 to 3.x.

`DQ_PROJECT` is the folder of the registry and of dq's settings; Airflow's workers and its triggerer read it.
`DQ_PYTHON` is the interpreter of the environment that has dq; unset, dq is in Airflow's own environment.
"""

from __future__ import annotations

import os
from datetime import datetime

from airflow import DAG

from dq.airflow import DqCheckOperator, DqDeliverySensor, DqPublishOperator

PROJECT = os.environ.get("DQ_PROJECT", ".")
PYTHON = os.environ.get("DQ_PYTHON")
# The delivery due in the morning is the previous day's.
DAY = {"day": "{{ macros.ds_add(ds, -1) }}"}

# of Airflow's zone
with DAG("orders", schedule="0 5 * * *", start_date=datetime(2026, 1, 1), catchup=False) as dag:  # noqa: DTZ001
    wait = DqDeliverySensor(
        task_id="wait",
        contract=f"{PROJECT}/orders.odcs.yaml",
        partition=DAY,
        folder=PROJECT,
        python=PYTHON,
        poke_interval=60,
    )
    # Add the tasks that build its own table here.
    gate = DqCheckOperator(
        task_id="gate",
        contract=f"{PROJECT}/sales.odcs.yaml",
        partition=DAY,
        folder=PROJECT,
        python=PYTHON,
    )
    publish = DqPublishOperator(
        task_id="publish",
        contract=f"{PROJECT}/sales.odcs.yaml",
        partition=DAY,
        folder=PROJECT,
        python=PYTHON,
    )
    wait >> gate >> publish
