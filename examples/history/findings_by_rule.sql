-- How many findings each rule had, audit by audit. A rule that was off, or whose table was not
-- there, found nothing because nobody looked: null, not 0.
select
    audited.cluster,
    audited.as_of,
    applied.rule,
    applied.severity,
    case when applied.is_on and applied.was_applied then applied.findings end as findings
from saved_runs as audited
join applied_rules as applied using (cluster, run_id)
where audited.question = 'audit'
    and exists(audited.saved_tables, saved -> saved.table = 'applied_rules')
order by audited.cluster, applied.rule, audited.as_of
