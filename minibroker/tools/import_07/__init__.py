"""The way of logs of Kafka 0.7 into topics of today: `minibroker import-07`.

    log directories ─► logs: partitions and their messages ─┐
                                                            ├─► importing ─► topics
    zookeeper, or a file ─► consumers: stored positions ─┐  └─► table: position → offset
                                                         └──────► committing ─► committed offsets

A message of 0.7 is addressed by its position in bytes, and a record by its number. The table has
both, so that a consumer goes on where it was. `kafka.records.log_07` has the bytes of a message.
"""
