"""The jobs, one module each: plan → source → transforms → sink, with nothing else in between.

Each has `check(plan, files)`, which asks broker and directories before Spark starts, and
`run(spark, plan, …)`. `pipeline.launch` chooses among them.
"""
