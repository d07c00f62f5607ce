"""Promises of two days, and a process that makes their schedules and may be killed anywhere."""

from __future__ import annotations

from contextlib import AbstractContextManager

from fakes.registrar import Nursery, doomed, nursery, serve
from fakes.scheduler import TARGET, promising

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.registry.aws.client import Rate
from dq.registry.aws.scheduler import Scheduler, connect_scheduler
from dq.registry.catalog import StepResult
from dq.registry.schedules import (
    ScheduleAt,
    SchedulePlan,
    ScheduleState,
    ScheduleStep,
    ScheduleTerms,
    apply_schedules,
    desired_schedules,
    plan_schedules,
)
from dq.store.engine import Store, open_store

CATALOG = "glue:123456789012:eu-central-1"
TERMS = ScheduleTerms("air", TARGET, "arn:aws:iam::123456789012:role/dq-scheduler", "dq")
# What the number of a run, in hundreds, says: the day whose promises it keeps.
_DAY = 100


def promised(day: int) -> list[Contract]:
    """Four promises on the first day, of which one has two schedules; on the second one has moved, one is
    retired, one is taken out of its contract, and the contract of the two is gone."""
    texts = {
        "orders": promising("orders"),
        "lines": promising("lines"),
        "items": promising("items"),
        "fares": promising("fares", "0 6 1 * 1"),
    }
    if day:
        texts["orders"] = promising("orders", "0 7 * * *")
        texts["lines"] = texts["lines"].replace("status: active", "status: retired")
        texts["items"] = texts["items"].partition("slaProperties")[0]
        del texts["fares"]
    made = [parse(text.encode(), f"{name}.odcs.yaml").contract for name, text in texts.items()]
    return [one for one in made if one is not None]


def notes(store: Store) -> ScheduleState:
    return ScheduleState(store, CATALOG, TERMS.group, TERMS.registry)


def planned(scheduler: Scheduler, store: Store, day: int) -> SchedulePlan:
    wanted = desired_schedules(promised(day), TERMS.registry, ScheduleAt.DUE, 2026)
    return plan_schedules(scheduler, TERMS, wanted, notes(store).schedules(), complete=True)


def kept(scheduler: Scheduler, store: Store, day: int) -> list[StepResult[ScheduleStep]]:
    made = planned(scheduler, store, day)
    return apply_schedules(scheduler, notes(store), TERMS, made, prune=True)


def keeping() -> AbstractContextManager[Nursery]:
    """Processes that keep schedules, in the environment of now: `run(url, number(day, commit))`."""
    return nursery(module="fakes.schedule_keeper")


def number(day: int, commit: int = 0) -> int:
    """What tells a process its day, and before which commit to the store it kills itself; 0 for none."""
    return day * _DAY + commit


def quick() -> Scheduler:
    """A client that is not held back."""
    rate = Rate(10_000, 10_000)
    return connect_scheduler(rates={"read": rate, "write": rate})


def _serve() -> None:
    scheduler = quick()

    def work(url: str, told: int) -> None:
        store = open_store(url)
        doomed(store, told % _DAY)
        kept(scheduler, store, told // _DAY)

    serve(work)


if __name__ == "__main__":
    _serve()
