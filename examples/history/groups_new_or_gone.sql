-- Which groups are new or gone from one audit of a cluster to the next. That a group is not shown
-- proves something only where the other dump has its partition of __consumer_offsets whole.
with audits as (
    select
        cluster, run_id, as_of, whole_partitions,
        lag(run_id) over in_order as run_before,
        lag(whole_partitions) over in_order as whole_before
    from saved_runs
    where question = 'audit'
        and size(filters) = 0  -- what was not asked about is not gone
        and exists(saved_tables, saved -> saved.table = 'groups')
    window in_order as (partition by cluster order by as_of, run_id)
),
appeared as (
    select
        audits.cluster, audits.as_of, present.group_id, 'new' as became,
        array_contains(whole_before, present.coordinator_partition) as is_certain
    from audits
    join groups as present using (cluster, run_id)
    left anti join groups as earlier
        on earlier.cluster = audits.cluster and earlier.run_id = audits.run_before
        and earlier.group_id = present.group_id
    where audits.run_before is not null
),
vanished as (
    select
        audits.cluster, audits.as_of, earlier.group_id, 'gone' as became,
        array_contains(whole_partitions, earlier.coordinator_partition) as is_certain
    from audits
    join groups as earlier
        on earlier.cluster = audits.cluster and earlier.run_id = audits.run_before
    left anti join groups as present
        on present.cluster = audits.cluster and present.run_id = audits.run_id
        and present.group_id = earlier.group_id
)
select cluster, as_of, group_id, if(is_certain, became, 'cannot tell') as became
from (select * from appeared union all select * from vanished)
order by cluster, as_of, group_id
