"""The bit fields of what a client may do, beside Kafka's numbers of operations."""

from __future__ import annotations

from minibroker.handlers import authorized_operations as operations

# AclOperation's codes, as every client that decodes the fields has them.
CODES = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}


def names_in(bits: int) -> set[str]:
    return {name for name, code in CODES.items() if bits & 1 << code}


def test_each_operation_is_the_bit_of_its_code() -> None:
    for name, code in CODES.items():
        assert getattr(operations, name) == 1 << code


def test_operations_of_the_cluster() -> None:
    assert names_in(operations.CLUSTER_OPERATIONS) == set(CODES) - {"READ", "WRITE", "DELETE"}


def test_operations_of_a_topic() -> None:
    not_of_topics = {"CLUSTER_ACTION", "IDEMPOTENT_WRITE"}
    assert names_in(operations.TOPIC_OPERATIONS) == set(CODES) - not_of_topics


def test_operations_of_a_group() -> None:
    ours = {"READ", "DESCRIBE", "DELETE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
    assert names_in(operations.GROUP_OPERATIONS) == ours


def test_no_other_bit_is_set() -> None:
    everything = sum(1 << code for code in CODES.values())
    assert not (operations.CLUSTER_OPERATIONS | operations.TOPIC_OPERATIONS) & ~everything
