"""The tasks' own fetch client: whole batches from a broker, decoded column by column.

`settings` says which settings it takes; for the others `source.reader` asks librdkafka.
"""
