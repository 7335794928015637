"""The contracts of tables: names, columns and types that users build on."""

from __future__ import annotations

import re

import pytest

import schemas
from schemas import Struct, Table, spark_struct

BEFORE = [
    "topic",
    "partition",
    "offset",
    "timestamp",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "is_transactional",
]
WHAT = ["record_type", "value_version", "value_layout", "is_tombstone"]
AFTER = ["unknown_tags", "batch_offset", "batch_position", "record_bytes", "copy", "segment"]
LOG_POSITION = [
    "coordinator_partition",
    "record_offset",
    "leader_epoch",
    "copy",
    "segment",
    "batch_position",
]
OF_KIND = {
    "control": "control_markers undecoded",
    "saved": "saved_runs",
    "data_log": "cluster_answers data_log_times data_segments data_stable_ends",
    "state": "assignments committed_offsets configs groups members partition_leaders "
    "pending_offsets share_batches share_partitions topics",
    "history": "assignment_history coordinator_epochs divergences group_epochs group_events "
    "load_faults membership_changes offset_history share_partition_epochs",
    "evaluation": "applied_rules assignment_alternatives assignment_balance "
    "audit_incident_parts audit_incidents audited_group_counts "
    "audited_groups chain changed_groups changed_members changed_offsets "
    "changed_share_partitions clock_differences cluster_differences commit_requests committers "
    "coordinator_load data_quality finding_changes findings gaps group_capacity group_churn "
    "group_deletions "
    "group_endings incident_brokers incident_causes incident_costs incident_others "
    "incident_owners lag lag_growth log_cleaning log_end_samples "
    "offset_deletions offset_expiration offset_moves offset_removals offset_verdicts "
    "one_shot_groups partition_usage "
    "rebalance_causes rebalance_storms rebalances record_growth region_checkpoint_offsets "
    "region_checkpoints region_drains region_findings region_operators region_seek_plan "
    "restore_groups restore_plan retention_what_if share_archived_ranges share_backlog "
    "share_checkpoints share_delivery_counts share_faults share_limits share_prunable "
    "share_readings share_stalls share_steps size_limits stalled_members status_history "
    "suppressions topic_readers topic_usage trend_bytes trend_changed_groups trend_disks "
    "trend_findings trend_groups trend_lag trend_retention trend_rules trend_runs usage_growth",
}
DDL_TYPE = re.compile(
    r"(array<|struct<|[a-z_]+:|>|,|tinyint|smallint|int|bigint|double|boolean|string|binary"
    r"|timestamp)+"
)


def columns(name: str) -> list[str]:
    return [column.name for column in schemas.table(name).columns]


@pytest.mark.parametrize("kind", OF_KIND)
def test_every_table_of_the_contract_is_there(kind: str) -> None:
    named = sorted(each.name for each in schemas.tables().values() if each.kind == kind)
    assert named == OF_KIND[kind].split()


def test_there_is_a_decoded_table_for_every_record_type_that_is_decoded() -> None:
    decoded = {each.name for each in schemas.tables().values() if each.kind == "decoded"}
    types = schemas.all_record_types().values()
    assert decoded == {each.table for each in types if each.read == "decode"}
    assert len(decoded) == 42


@pytest.mark.parametrize("name", ["delegation_token_record", "no_op_record", "decoded_record"])
def test_what_is_not_decoded_has_no_table(name: str) -> None:
    with pytest.raises(KeyError):
        schemas.table(name)


def test_a_secret_has_no_contract_at_all() -> None:
    with pytest.raises(ValueError, match="DelegationTokenRecord is not decoded"):
        schemas.decoded_table(schemas.record_type("DelegationTokenRecord"))


def test_decoded_tables_have_the_columns_of_the_contract_in_order() -> None:
    assert columns("offset_commit") == [*BEFORE, *WHAT, "key", "value", *AFTER]
    assert columns("share_update") == columns("transaction_log") == columns("offset_commit")


def test_a_struct_without_fields_is_no_column_as_parquet_has_no_empty_struct() -> None:
    assert columns("topic_record") == [*BEFORE, *WHAT, "value", *AFTER]
    assert columns("end_transaction_record") == [*BEFORE, *WHAT, *AFTER]


def test_control_markers_are_decoded_rows_up_to_the_transaction_and_from_the_batch() -> None:
    assert columns("control_markers") == [
        *BEFORE,
        "control_type",
        "coordinator_epoch",
        *AFTER[1:],
    ]


def test_undecoded_rows_say_why_and_where() -> None:
    assert columns("undecoded") == [
        *BEFORE[:4],
        *("key", "value", "reason", "detail"),
        *("batch_offset", "batch_position", "batch_bytes", "copy", "segment"),
    ]
    assert schemas.table("undecoded").column("offset").nullable


@pytest.mark.parametrize(
    "name", ["offset_history", "group_events", "membership_changes", "offset_removals"]
)
def test_what_a_record_showed_says_where_the_record_is(name: str) -> None:
    place = [each for each in columns(name) if each in LOG_POSITION]
    assert place == LOG_POSITION


def test_pending_offsets_are_committed_offsets_and_their_transaction() -> None:
    committed, pending = columns("committed_offsets"), columns("pending_offsets")
    assert pending[: len(committed)] == committed
    assert pending[len(committed) :] == [
        "producer_id",
        "producer_epoch",
        "transactional_id",
        "transaction_state",
        "decided",
    ]


@pytest.mark.parametrize("table", schemas.tables().values(), ids=lambda each: each.name)
def test_a_contract_is_sound(table: Table) -> None:
    assert table.key
    for column in table.columns:
        assert DDL_TYPE.fullmatch(column.type), column.name
        assert column.type.count("<") == column.type.count(">"), column.name
        assert column.about.endswith("."), column.name
    assert table.about.endswith(".")


@pytest.mark.parametrize("table", schemas.tables().values(), ids=lambda each: each.name)
def test_times_are_timestamps(table: Table) -> None:
    for column in table.columns:
        named_so = re.search(r"(^|_)(at|since|timestamp)$", column.name)
        if named_so and column.name != "diverges_at":  # an offset
            assert column.type == "timestamp", column.name


@pytest.mark.parametrize("table", schemas.tables().values(), ids=lambda each: each.name)
def test_offsets_epochs_and_counts_are_whole_numbers(table: Table) -> None:
    for column in table.columns:
        if re.search(r"(^|_)(offset|offsets|epoch|count|position|bytes|records)$", column.name):
            assert column.type in ("int", "bigint", "smallint", "array<int>"), column.name


DDL = {
    "key of offset_commit": "struct<group:string,topic:string,partition:int>",
    "value of offset_commit": (
        "struct<offset:bigint,leader_epoch:int,metadata:string,commit_timestamp:bigint,"
        "expire_timestamp:bigint,topic_id:string>"
    ),
    "value of group_metadata": (
        "struct<protocol_type:string,generation:int,protocol:string,leader:string,"
        "current_state_timestamp:bigint,members:array<struct<member_id:string,"
        "group_instance_id:string,client_id:string,client_host:string,rebalance_timeout:int,"
        "session_timeout:int,subscription:binary,subscription_decoded:struct<"
        "topics:array<string>,user_data:binary,owned_partitions:array<struct<topic:string,"
        "partitions:array<int>>>,generation_id:int,rack_id:string,fields_written:int>,assignment:binary,"
        "assignment_decoded:struct<assigned_partitions:array<struct<topic:string,"
        "partitions:array<int>>>,user_data:binary,fields_written:int>>>>"
    ),
    "key of share_snapshot": "struct<group_id:string,topic_id:string,partition:int>",
    "value of share_snapshot": (
        "struct<snapshot_epoch:int,state_epoch:int,leader_epoch:int,start_offset:bigint,"
        "delivery_complete_count:int,create_timestamp:bigint,write_timestamp:bigint,"
        "state_batches:array<struct<first_offset:bigint,last_offset:bigint,"
        "delivery_state:tinyint,delivery_count:smallint>>>"
    ),
    "value of register_broker_record": (
        "struct<broker_id:int,is_migrating_zk_broker:boolean,incarnation_id:string,"
        "broker_epoch:bigint,end_points:array<struct<name:string,host:string,port:int,"
        "security_protocol:smallint>>,features:array<struct<name:string,"
        "min_supported_version:smallint,max_supported_version:smallint>>,rack:string,"
        "fenced:boolean,in_controlled_shutdown:boolean,log_dirs:array<string>,"
        "cordoned_log_dirs:array<string>>"
    ),
    "unknown_tags of topic_record": "array<struct<path:string,tag:int,data:binary>>",
    "evidence of findings": (
        "array<struct<copy:string,topic:string,partition:int,offset:bigint,segment:string,"
        "batch_position:bigint>>"
    ),
}


@pytest.mark.parametrize("which", DDL)
def test_types_are_these(which: str) -> None:
    column, table = which.split(" of ")
    assert schemas.table(table).column(column).type == DDL[which]


@pytest.mark.parametrize(
    "struct",
    [
        part
        for each in schemas.all_record_types().values()
        for part in (each.key, each.value)
        if part.fields
    ],
)
def test_struct_types_have_the_columns_of_the_struct(struct: Struct) -> None:
    top = re.sub(r"<[^<>]*>", "", spark_struct(struct)[7:-1])
    while "<" in top:
        top = re.sub(r"<[^<>]*>", "", top)
    assert tuple(part.split(":")[0] for part in top.split(",")) == struct.columns()


def test_a_table_is_written_as_spark_ddl() -> None:
    table = schemas.table("share_batches")
    assert table.ddl() == (
        "`group_id` string NOT NULL, `topic_id` string NOT NULL, `topic` string, "
        "`partition` int NOT NULL, `first_offset` bigint NOT NULL, `last_offset` bigint NOT NULL, "
        "`delivery_state` tinyint NOT NULL, `delivery_state_name` string NOT NULL, "
        "`delivery_count` smallint NOT NULL, `complete` boolean NOT NULL, `missing` string"
    )
    assert "NOT NULL" not in table.ddl(not_null=False)
