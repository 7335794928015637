"""How often groups rebalance, who came and went before, and what stands still since.

`tables.REBALANCES` says what each table is made of.
"""
