"""Archives: tasks and writers make a batch of records one commit of a table."""
