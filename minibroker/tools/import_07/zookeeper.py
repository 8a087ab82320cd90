"""The positions of consumers in the ZooKeeper of a Kafka 0.7, which is read and not changed.

The session of the broker (`cluster.zookeeper_session`) makes its chroot and stays for ever; this
one reads some nodes in one thread, and ends.

Source: Kafka 0.7 ZkUtils, ZookeeperConsumerConnector.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final

from minibroker.tools.import_07.consumers import StoredPosition, position_of
from minibroker.tools.import_07.errors import ImportRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONNECT_S: Final = 15.0
"""Time in which ZooKeeper has to answer."""
_PARTITION: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def positions_in_zookeeper(connect: str, topics: Iterable[str]) -> list[StoredPosition]:
    """Return the positions of all groups in some topics.

    `connect`: `HOST:PORT[,HOST:PORT...][/CHROOT]`, as `zk.connect` of 0.7. Nothing is written
    there. Raises ImportRefusedError: no answer, no permission, or a node with another text.
    """
    from kazoo.client import KazooClient  # noqa: PLC0415  60 ms that only this way pays
    from kazoo.exceptions import KazooException, NoNodeError  # noqa: PLC0415  as above

    quiet = logging.getLogger(f"{__name__}.kazoo")  # the sentence of the error says it once
    quiet.setLevel(logging.CRITICAL)
    hosts, _, chroot = connect.partition("/")
    root = f"/{chroot}".rstrip("/")
    try:
        client = KazooClient(hosts, timeout=CONNECT_S, read_only=True, logger=quiet)
    except (ValueError, KazooException) as error:
        raise ImportRefusedError(
            f"{connect} is no address of ZooKeeper, expected HOST:PORT[/CHROOT]: {error}"
        ) from error
    try:
        client.start(CONNECT_S)
        if not client.exists(f"{root}/consumers"):
            raise ImportRefusedError(
                f"ZooKeeper at {hosts} has no {root}/consumers: expected the chroot of zk.connect "
                "behind its address, HOST:PORT/CHROOT"
            )
        return list(_positions(client, f"{root}/consumers", frozenset(topics), NoNodeError))
    except (KazooException, client.handler.timeout_exception) as error:
        raise ImportRefusedError(
            f"ZooKeeper at {connect} cannot be read: {str(error) or type(error).__name__}"
        ) from error
    finally:
        client.stop()
        client.close()


def _positions(
    client: Any, root: str, topics: frozenset[str], missing: type[Exception]
) -> Iterator[StoredPosition]:
    """Yield the positions below `root`, a path; a node that goes meanwhile is left out.

    `missing`: the error of a node that is not there. Raises ImportRefusedError, KazooException.
    """

    def children(path: str) -> list[str]:
        try:
            return sorted(client.get_children(path))
        except missing:
            return []

    for group in children(root):
        offsets = f"{root}/{group}/offsets"
        for topic in children(offsets):
            for partition in children(f"{offsets}/{topic}") if topic in topics else ():
                match = _PARTITION.fullmatch(partition)
                path = f"{offsets}/{topic}/{partition}"
                if match is None:
                    raise ImportRefusedError(
                        f"the node {path} is no partition of Kafka 0.7, expected BROKER-PARTITION"
                    )
                try:
                    data = client.get(path)[0]
                except missing:
                    continue
                position = position_of((data or b"").decode("latin-1"), f"the node {path}")
                yield StoredPosition(group, topic, int(match[1]), int(match[2]), position)
