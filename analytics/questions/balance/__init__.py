"""How evenly groups share their partitions, why not, and what other assignors would give.

`evaluated.evaluated` is the door; the room `cases` makes what goes in, for many groups at a time.
What is said of one group, in the room `judgement`, is plain Python: groups are small.
"""
