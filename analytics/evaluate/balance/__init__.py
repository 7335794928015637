"""How evenly groups share their partitions, why not, and what other assignors would give.

`evaluated.assignment_balance` and `evaluated.assignment_alternatives` are the doors; `cases` says
what goes in. What is said of one group is plain Python (`judge`, `alternatives`): groups are small,
and Spark runs it group by group.
"""
