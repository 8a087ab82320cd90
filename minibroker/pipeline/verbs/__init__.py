"""The verbs of the pipeline, one module each: options, plan, checks and help from one declaration.

`declaration` says how an option or a verb is added. Nothing here needs Spark or a broker, so that
`--help`, wrong usage and `--dry-run` answer at once.
"""
