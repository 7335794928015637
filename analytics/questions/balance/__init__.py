"""How evenly groups share their partitions, why not, and what other assignors would give.

`evaluated.evaluated` is the door; `at_instant` and `through_history` make the cases that go in, for
many groups at a time. What is said of one group, `facts` and `judge`, is plain Python: groups are
small.
"""
