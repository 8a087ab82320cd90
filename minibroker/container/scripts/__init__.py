"""Kafka's scripts by their names, for start scripts, health checks and init containers.

    kafka-topics.sh --create … ─► image: /usr/local/bin/kafka-topics ─► __main__ ─► topics.run
                                                                          words ─► options.parse

Options and output are those of Kafka 3.9; names of options of 4.x are taken, too. An error is one
line where Kafka prints a stack trace. `--zookeeper` of old scripts finds a broker through
ZooKeeper, or asks the broker of this container.

| script                                     | module      |
|--------------------------------------------|-------------|
| kafka-topics                               | `topics`    |
| kafka-console-producer                     | `producer`  |
| kafka-console-consumer                     | `consumer`  |
| kafka-consumer-groups                      | `groups`    |
| kafka-configs                              | `configs`   |
| kafka-get-offsets, kafka-run-class         | `offsets`   |
| kafka-broker-api-versions, kafka-cluster   | `brokers`   |
| cub, dub, nc, wait-for-port                | `waiting`   |

Outside of the image: `python -m minibroker.container.scripts kafka-topics --list …`.
"""
