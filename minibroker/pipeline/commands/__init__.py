"""Run the plans of `minibroker pipeline VERB`, and print what there is to see.

One module for each kind of verb, with `run(plan, engine, out, errors)`, which returns the exit
code. `verbs` names the module of a verb.
"""
