"""Spark as a command uses it: the session, Java, what one machine is spared."""
