"""The way to Apache Kafka 4 and back: the metadata of a broker that is stopped, in KRaft's form.

    minibroker-metadata.db ◄─► `tree` ◄─► `metadata` ◄─► `records` ◄─► `log_directory`
                                               ▲
                            `hand_over`, `take_back`: who calls what, in which order

`metadata` is the value in the middle. `tree` knows the nodes, `records` the records of KRaft,
`log_directory` the files of `__cluster_metadata-0`. From records to metadata it is `replay`, from
files to records `log_reading`. `levels` has the features of Kafka's releases, `stopped` the
partitions of nodes that do not run.
"""
