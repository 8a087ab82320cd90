"""Topics as tables: options and offsets in, ranges for the tasks, Arrow batches of records out.

`data_source` gives it to Spark, `frames` to the jobs.
"""
