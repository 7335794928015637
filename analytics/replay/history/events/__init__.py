"""The table `group_events`: what befell groups, share partitions and what they depend on."""
