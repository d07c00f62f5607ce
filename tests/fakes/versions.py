"""What the tests of one version of Spark need not say again of another.

On 4.0 every test runs. On 3.5 those stay that ask Spark for something: what it reads, refuses, counts, writes
and registers. Left out are tests of what dq makes of such answers and of its own files; of those that ask
Spark in a way of their own, some stay, and are named here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOLD = "what a command or a message says of results, whoever gave them"
_STEPS = "the order of dq's own steps around a check, a partition or a branch"
_OURS = "dq's own arithmetic and memory over answers that other tests of 3.5 ask for"
_FILES = "what dq itself reads in footers, manifests and logs; the tests that stay read what this Spark wrote"

# A file of tests -> why it says the same on each Spark, and its tests that ask Spark all the same.
# A name stands for all parameters, or has those of one test in brackets.
ALIKE: dict[str, tuple[str, frozenset[str]]] = {
    "cli/test_backtest.py": (_OURS, frozenset()),
    "cli/test_backtest_base.py": (_OURS, frozenset()),
    "cli/test_check.py": (
        _TOLD,
        frozenset(
            {
                "test_a_relationship_is_looked_up_in_the_other_object_of_the_contract",
                "test_bad_rows_are_written_apart_and_counted_for_machines",
                "test_the_default_is_what_was_delivered_and_not_checked_yet",
            }
        ),
    ),
    "cli/test_check_many.py": (
        _TOLD,
        frozenset(
            {
                "test_one_switch_has_everything_read_by_spark",
                "test_results_are_appended_to_a_folder_for_dashboards_with_a_row_for_what_could_not_be_tested",
                "test_sparks_pages_tell_which_contract_a_job_is_of",
            }
        ),
    ),
    "cli/test_delivered_rows.py": (_OURS, frozenset({"test_spark_counts_the_same_groups"})),
    # The files of its check are read in `dataquality/spark/test_file_schemas.py`.
    "cli/test_discover.py": (_OURS, frozenset()),
    "cli/test_first_hour.py": (_TOLD, frozenset({"test_a_file_that_is_no_parquet_is_said_in_words"})),
    "cli/test_json_documents.py": (_TOLD, frozenset()),
    # `dataquality/spark/test_dataset.py` reads each layout of the other formats.
    "cli/test_layouts.py": (
        _OURS,
        frozenset(
            {
                "test_files_outside_of_the_layout_are_named",
            }
        ),
    ),
    "cli/test_lineage.py": (_TOLD, frozenset()),
    "cli/test_lineage_audit.py": (_TOLD, frozenset()),
    # How rows are compared is in `dataquality/test_reconcile.py`.
    "cli/test_migration.py": (_OURS, frozenset()),
    "cli/test_oors.py": (_TOLD, frozenset()),
    "cli/test_outputs.py": (_TOLD, frozenset()),
    "cli/test_propose.py": (_OURS, frozenset({"test_the_contract_gets_the_rules_that_its_data_keeps"})),
    "cli/test_publish_audit.py": (
        _STEPS,
        frozenset(
            {
                "test_what_breaks_it_stays_where_it_is_and_readers_see_what_was_there",
                "test_what_is_checked_is_the_folder_itself_and_not_what_it_would_match",
                "test_what_keeps_the_contract_becomes_the_partition",
            }
        ),
    ),
    "cli/test_publish_branch.py": (
        _STEPS,
        frozenset(
            {
                "test_a_bad_branch_is_left_as_it_is",
                "test_a_branch_that_main_has_left_behind_is_refused",
                "test_a_good_branch_becomes_main",
            }
        ),
    ),
    "cli/test_published_elsewhere.py": (
        _STEPS,
        frozenset({"test_check_counts_its_rows", "test_check_finds_a_key_that_it_repeats"}),
    ),
    "cli/test_published_in_a_catalog.py": (
        _STEPS,
        frozenset(
            {
                "test_every_command_sees_it",
                "test_repair_adds_it_where_it_was_published_after_the_catalog_lost_it",
            }
        ),
    ),
    "cli/test_publish_python.py": (_STEPS, frozenset({"test_rows_are_those_that_the_gate_counted"})),
    # How rows are compared is in `dataquality/test_reconcile.py`.
    "cli/test_reconcile.py": (
        _OURS,
        frozenset(
            {
                "test_servers_of_a_contract_by_its_primary_key",
                "test_text_files_get_the_types_of_the_other_side",
            }
        ),
    ),
    "cli/test_spark_at_need.py": (_STEPS, frozenset()),
    "cli/test_watch_consumers.py": (_TOLD, frozenset()),
    # What it compares is measured by its examples in `dataquality/checks/test_shelf.py`.
    "dataquality/checks/test_unusual.py": (
        _OURS,
        frozenset(
            {
                "test_bytes_read_by_spark_are_the_same",
                "test_unusual_numbers_cost_no_pass_of_their_own",
            }
        ),
    ),
    "dataquality/clauses/test_foreign_key.py": (
        _OURS,
        frozenset(
            {
                "test_keys_are_equal_as_values_are",
                "test_keys_without_a_match_are_counted_and_shown_with_how_many_rows_have_them",
            }
        ),
    ),
    "dataquality/lakehouse/test_commits.py": (
        _FILES,
        frozenset(
            {
                "test_a_commit_that_brings_rows_is_a_delivery_within_one_tick_and_no_other",
                "test_what_is_taken_away_is_seen_in_the_log_and_what_only_rearranges_is_not",
            }
        ),
    ),
    "dataquality/lakehouse/test_liars.py": (_FILES, frozenset()),
    "dataquality/lakehouse/test_statistics.py": (
        _FILES,
        frozenset(
            {
                "test_a_broken_promise_is_told_by_the_scan",
                "test_deleted_rows_are_counted_by_the_scan",
                "test_facts_follow_a_column_and_not_its_name",
                "test_what_the_log_says_proves_bounds_nulls_and_counts",
            }
        ),
    ),
    "dataquality/lakehouse/test_table_metadata.py": (
        _FILES,
        frozenset({"test_rows_nulls_and_columns_are_those_that_spark_counts"}),
    ),
    "dataquality/lakehouse/test_writers.py": (_FILES, frozenset()),
    "dataquality/shortcuts/statistics/test_parquet.py": (
        _FILES,
        frozenset(
            {
                "test_a_frame_of_files_is_proven",
                "test_a_frame_that_is_more_than_files_is_scanned",
                "test_only_what_is_not_proven_is_read",
                "test_partitions_are_proven_by_their_own_files",
                "test_the_age_of_data_is_proven_by_the_extremes_of_its_files",
            }
        ),
    ),
    "dataquality/shortcuts/statistics/test_writers.py": (_FILES, frozenset()),
    "dataquality/shortcuts/test_kept.py": (
        _OURS,
        frozenset(
            {
                "test_all_that_merges_is_the_same_as_from_the_rows",
                "test_kept_parts_equal_the_whole_and_only_the_new_one_is_counted",
            }
        ),
    ),
    # What merges, and what a kept part says, is asked of each Spark in `test_kept.py`.
    "dataquality/shortcuts/test_kept_histories.py": (_OURS, frozenset()),
    "dataquality/shortcuts/test_verification.py": (
        _OURS,
        frozenset({"test_statistics_that_hold_are_counted_again_and_still_prove"}),
    ),
    "dataquality/test_backtest.py": (
        _OURS,
        frozenset({"test_partitions_of_any_type_are_told_apart_as_spark_does"}),
    ),
    "dataquality/spark/test_types_of_files.py": (_OURS, frozenset()),
    # What both readers make of each type is in `dataquality/local/test_readers_agree.py`.
    "dataquality/local/test_small_partitions.py": (
        _OURS,
        frozenset(
            {
                "test_columns_that_only_the_first_partition_has_or_lacks_are_merged_as_by_spark",
                "test_results_on_hive_folders_are_those_of_a_scan[dates and NULL]",
                "test_results_on_hive_folders_are_those_of_a_scan[texts]",
                "test_results_on_other_layouts_are_those_of_a_scan[hours of tenants]",
                "test_results_on_tables_of_other_writers_are_those_of_a_scan",
            }
        ),
    ),
    "dataquality/test_deduplication.py": (
        _OURS,
        frozenset(
            {
                "test_a_partition_has_one_folder_however_its_value_is_written",
                "test_a_rule_on_some_rows_ranks_these_rows_by_a_nested_column",
                "test_the_kept_rows_are_those_of_plain_python",
            }
        ),
    ),
    "dataquality/test_parquet_sums.py": (
        _OURS,
        frozenset(
            {
                "test_hashes_of_keys_are_those_of_spark",
                "test_random_tables_have_the_same_result_from_tasks_and_from_spark[0]",
                "test_random_tables_have_the_same_result_from_tasks_and_from_spark[1]",
            }
        ),
    ),
    "dataquality/test_reconcile.py": (
        _OURS,
        frozenset(
            {
                "test_a_partition_of_nan_is_not_lost",
                "test_hashes_are_equal_for_equal_values_only",
                "test_padding_of_char_is_not_compared",
                "test_random_pairs_of_tables_have_the_verdict_of_counting_rows",
                "test_values_are_equal_by_the_written_rules",
            }
        ),
    ),
    "dataquality/test_bad_data.py": (_TOLD, frozenset()),
    "oracle/test_commands_agree.py": (
        "the same commands and writers with other seeds",
        frozenset({"test_all_commands_say_the_same_of_a_table[first]"}),
    ),
    "registry/glue/test_audited_partitions.py": (
        _STEPS,
        frozenset({"test_every_command_reads_it_at_its_location_in_the_catalog[template]"}),
    ),
    "registry/test_commands.py": (
        _STEPS,
        frozenset({"test_partitions_of_the_lake_are_planned_added_once_and_told_when_gone"}),
    ),
    # What Spark's own statements make of each type and format is in `test_catalogs.py` and `test_hive.py`.
    "registry/test_odd_contracts.py": (_STEPS, frozenset()),
    "registry/test_text_terms.py": (
        _STEPS,
        frozenset(
            {
                "test_an_encoding_that_spark_does_not_read_is_refused",
                "test_spark_sql_reads_through_hive_what_a_check_reads",
                "test_the_keys_of_json_are_kept_as_the_contract_spells_them",
            }
        ),
    ),
    "security/test_workers.py": (
        _STEPS,
        frozenset({"test_the_tasks_of_a_spark_submit_import_nothing_of_the_working_folder"}),
    ),
    "test_examples.py": (_TOLD, frozenset()),
    "test_operations.py": (_STEPS, frozenset()),
}

# Where it is looked at what Spark makes of rendered predicates and of users' queries, and how a pass is cut.
# There its plans are compiled to byte code, as they are for users and in each process that a test starts.
# Elsewhere that is a fifth of the CPU for plans of three rows; both come to the same by the tests of Spark.
COMPILED = (
    "contracts/sql/",
    "dataquality/checks/test_shelf.py",
    "dataquality/checks/test_sql_rule.py",
    "dataquality/model/",
    "dataquality/sql/",
    "dataquality/test_object_check.py",
    "dataquality/test_sql_fold.py",
    "oracle/test_random_tables.py",
)
INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
_BY_DEFAULT = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}


def mark(item: pytest.Item) -> None:
    """Marks what says the same on each Spark."""
    file, _, rest = item.nodeid.removeprefix("tests/").partition("::")
    if file in ALIKE and not ALIKE[file][1] & {rest, rest.partition("[")[0]}:
        item.add_marker(pytest.mark.alike)


def choose(spark: SparkSession, item: pytest.Item) -> None:
    """Has the session compile the plans of this test, or not."""
    compiled = item.nodeid.removeprefix("tests/").startswith(COMPILED)
    for name, value in (_BY_DEFAULT if compiled else INTERPRETED).items():
        spark.conf.set(name, value)
