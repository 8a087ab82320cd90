"""The number of kills of the tests in this folder, their random numbers, the brokers' settings."""

from __future__ import annotations

import os

KILLS = int(os.environ.get("MINIBROKER_FIRE_KILLS", "3"))

CLUSTER_KILLS = int(os.environ.get("MINIBROKER_FIRE_CLUSTER_KILLS", "0"))
"""Faults of one of three brokers; without any the test of three brokers is not collected."""

SEED = int(os.environ.get("MINIBROKER_FIRE_SEED", "1"))

WAIT_S = 240.0

PARTITIONS = 8
"""Partitions of the input and of the output."""

TRANSACTIONS_MIN, TRANSACTIONS_MAX = 3, 25
"""Transactions between two kills."""

CLIENT_KILL_EVERY = 3
"""A client is killed too at each kill of a broker with a number that this divides."""

SETTINGS = {
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.bytes": "200000",
}

CLUSTER_SETTINGS = {
    **SETTINGS,
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "auto.create.topics.enable": "false",
    "replica.lag.time.max.ms": "5000",
    "zookeeper.session.timeout.ms": "6000",
    "leader.imbalance.check.interval.seconds": "20",
}
