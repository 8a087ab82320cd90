"""Settings of the brokers that change sides."""

from __future__ import annotations

from tests.support.peers import ONE_NODE

SETTINGS = {
    **ONE_NODE,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "share.coordinator.state.topic.num.partitions": "2",
}
"""One broker, whose clients may do everything, and that holds ACLs all the same."""
REPLICATED = {
    **{
        key: value
        for key, value in SETTINGS.items()
        if ".replication.factor" not in key and ".min.isr" not in key
    },
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
"""Three brokers."""
