"""Jobs in Spark: the session, a query that runs, its progress, and what it keeps for later."""
