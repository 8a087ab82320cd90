"""Bit fields of authorized operations: without an authorizer a client may do everything.

Source: KIP-430; Kafka AclOperation (bit = code of the operation) and AclEntry (operations per
resource).
"""

from typing import Final

READ: Final = 1 << 3
WRITE: Final = 1 << 4
CREATE: Final = 1 << 5
DELETE: Final = 1 << 6
ALTER: Final = 1 << 7
DESCRIBE: Final = 1 << 8
CLUSTER_ACTION: Final = 1 << 9
DESCRIBE_CONFIGS: Final = 1 << 10
ALTER_CONFIGS: Final = 1 << 11
IDEMPOTENT_WRITE: Final = 1 << 12

CLUSTER_OPERATIONS: Final = (
    CREATE | CLUSTER_ACTION | DESCRIBE_CONFIGS | ALTER_CONFIGS | IDEMPOTENT_WRITE | ALTER | DESCRIBE
)
TOPIC_OPERATIONS: Final = (
    READ | WRITE | CREATE | DESCRIBE | DELETE | ALTER | DESCRIBE_CONFIGS | ALTER_CONFIGS
)
GROUP_OPERATIONS: Final = READ | DESCRIBE | DELETE | DESCRIBE_CONFIGS | ALTER_CONFIGS
