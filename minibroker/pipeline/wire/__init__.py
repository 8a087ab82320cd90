"""The tasks' own client: whole batches from a broker, decoded column by column, and to it.

`settings` says which settings it takes. For the others `source.reader` and `sink.wire_transaction`
ask librdkafka.
"""
