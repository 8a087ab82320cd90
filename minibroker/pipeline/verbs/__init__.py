"""The verbs of `minibroker pipeline`, one room each: plan, job, tasks, and what it prints.

A verb stands on the shared rooms beside this one; none of them names a verb.
"""
