"""Tables that an archive writes and a replay reads: Iceberg, Delta, Parquet, and plain files.

`table` is the interface, `choice` chooses by the format.
"""
