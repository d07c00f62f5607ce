"""The actions of IAM that keeping an account in step needs, by what each is on."""

from __future__ import annotations

# Of the catalog, its databases and their tables; a plan needs those that begin with Get.
GLUE = (
    "glue:BatchCreatePartition",
    "glue:BatchUpdatePartition",
    "glue:CreateDatabase",
    "glue:CreatePartitionIndex",
    "glue:CreateTable",
    "glue:DeletePartitionIndex",
    "glue:DeleteTable",
    "glue:GetPartition",
    "glue:GetPartitionIndexes",
    "glue:GetPartitions",
    "glue:GetTable",
    "glue:GetTables",
    "glue:UpdateTable",
)
# Lake Formation knows no resources in policies of IAM: its own grants bound these.
LAKE_FORMATION = (
    "lakeformation:AddLFTagsToResource",
    "lakeformation:CreateDataCellsFilter",
    "lakeformation:CreateLFTag",
    "lakeformation:DeleteDataCellsFilter",
    "lakeformation:GetLFTag",
    "lakeformation:GetResourceLFTags",
    "lakeformation:GrantPermissions",
    "lakeformation:ListPermissions",
    "lakeformation:ListResources",
    "lakeformation:RegisterResource",
    "lakeformation:RemoveLFTagsFromResource",
    "lakeformation:RevokePermissions",
    "lakeformation:UpdateLFTag",
)
# Of the schedules in a group, of the group, and of no one thing.
SCHEDULES = (
    "scheduler:CreateSchedule",
    "scheduler:DeleteSchedule",
    "scheduler:GetSchedule",
    "scheduler:UpdateSchedule",
)
SCHEDULE_GROUP = ("scheduler:GetScheduleGroup",)
SCHEDULE_LISTS = ("scheduler:ListSchedules",)
