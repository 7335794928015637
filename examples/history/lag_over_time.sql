-- How far behind each group was, audit by audit. Where the lag of one of its partitions cannot be
-- told, that of the group is null: a sum of the others would be too small.
select
    audited.cluster,
    audited.as_of,
    of_group.group_id,
    case when of_group.lag_not_told = 0 and of_group.complete then of_group.lag end as lag,
    of_group.lag_not_told as partitions_not_told,
    of_group.missing
from saved_runs as audited
join audited_groups as of_group using (cluster, run_id)
where audited.question = 'audit'
    and exists(audited.saved_tables, saved -> saved.table = 'audited_groups')
order by audited.cluster, of_group.group_id, audited.as_of
