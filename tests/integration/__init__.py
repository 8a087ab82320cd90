"""minibroker with real clients, real tools, Apache Kafka and ZooKeeper.

A test takes the least that shows what it is about:

- `kafka`, `kafka_broker`, `kafka_topic`: the fixtures that users get (`minibroker.testing`), and so
  the first choice: faults, moves of the clock, clients, tools, the example projects.
- `InProcessBroker`: raw frames at every version to a broker in the test's own loop, with a clock
  that stands still: groups, synced groups, transactions, retention, log directories.
- a process (`minibroker`, `new_broker`, tests/conftest.py), where a process is the matter: it is
  killed or stopped and started again (clients, old clients, consumer groups, classic groups,
  transactions, producer ids, log directories), another broker takes over what it leaves or shares
  its ZooKeeper (compaction, take-overs, quotas, admin clients, ZooKeeper), its memory and its log
  under bad input are looked at, or the command itself (control, container).
"""
