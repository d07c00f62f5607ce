"""When a delivery is due: strict cron, zone, daylight-saving policy, cycles."""

from dq.contracts.schedule.calendar import DayEffect, FreeDays
from dq.contracts.schedule.clock import (
    CroniterDifference,
    Dialect,
    DstPolicy,
    Due,
    Note,
    Schedule,
    croniter_difference,
    dst_hazards,
    parse,
    shortest_gap,
)
from dq.contracts.schedule.cycle import Cycle, check, cycles, render
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
