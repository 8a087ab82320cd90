"""Consumer groups: members, generations, assignments and committed offsets.

Stands between `handlers/` and `partitions/`: what a coordinator must not forget is a record of
`__consumer_offsets`.
"""
