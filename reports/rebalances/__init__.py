"""What `rebalances` prints: storms, churn of each group, each rebalance, what stands still."""
