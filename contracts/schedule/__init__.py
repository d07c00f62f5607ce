"""When a delivery is due: strict cron, zone, daylight-saving policy, cycles."""

from dq.contracts.schedule.calendar_days import DayEffect, FreeDays
from dq.contracts.schedule.clock import Schedule
from dq.contracts.schedule.cycle import Cycle, cycles
from dq.contracts.schedule.expression import parse
from dq.contracts.schedule.lint import CroniterDifference, croniter_difference, dst_hazards, shortest_gap
from dq.contracts.schedule.partition import check, render
from dq.contracts.schedule.words import Dialect, DstPolicy, Due, Note
from dq.contracts.schedule.zone import TZDATA_VERSION, Transition, transitions, zone
from dq.contracts.shared.outcome import TextFault

__all__ = [
    "TZDATA_VERSION",
    "CroniterDifference",
    "Cycle",
    "DayEffect",
    "Dialect",
    "DstPolicy",
    "Due",
    "FreeDays",
    "Note",
    "Schedule",
    "TextFault",
    "Transition",
    "check",
    "croniter_difference",
    "cycles",
    "dst_hazards",
    "parse",
    "render",
    "shortest_gap",
    "transitions",
    "zone",
]
