"""`kafka-broker-api-versions` and `kafka-cluster`: what health checks ask.

Source: Kafka BrokerApiVersionsCommand, ClusterTool (3.9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from minibroker.client import admin
from minibroker.container.scripts.connecting import OPTIONS as CONNECTION
from minibroker.container.scripts.connecting import reader_of
from minibroker.container.scripts.options import ScriptOption, Words
from minibroker.kafka.protocol.api_keys import APIS
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.client.admin import DescribedBroker
    from minibroker.client.client import Client

VERSIONS: Final = "kafka-broker-api-versions"
CLUSTER: Final = "kafka-cluster"
DOES: Final = {
    VERSIONS: "show the versions of the APIs of each broker",
    CLUSTER: "show the id of the cluster: cluster-id",
}
OPTIONS: Final = {
    VERSIONS: CONNECTION,
    CLUSTER: {**CONNECTION, "config": ScriptOption("FILE", "settings of the client")},
}
_API_VERSIONS: Final = (0, 3)


def run(name: str, words: Words, out: TextIO, errors: TextIO) -> int:
    """Show it; return the exit code. Raises KafkaError, OSError, ProtocolError, ConfigError."""
    if name == CLUSTER:
        path = words.all("config")
        all_words = Words({**words.values, "command-config": path} if path else words.values)
        out.write(f"Cluster ID: {admin.describe(reader_of(all_words), ()).cluster_id}\n")
        return 0
    client = reader_of(words)
    for broker_id, broker in sorted(admin.describe(client, ()).brokers.items()):
        host, port = broker.address
        out.write(f"{host}:{port} (id: {broker_id} rack: {broker.rack or 'null'}) -> (\n")
        out.write(",\n".join(_lines(client, broker)))
        out.write("\n)\n")
    return 0


def _lines(client: Client, broker: DescribedBroker) -> Iterable[str]:
    """Yield a line for each API of a broker."""
    request = ApiVersionsRequest(client_software_name="minibroker", client_software_version="1")
    answer = client.ask(broker.address, request, ApiVersionsResponse, _API_VERSIONS)
    for api in sorted(answer.api_keys, key=lambda api: int(api.api_key)):
        api_name = APIS.get(api.api_key)
        name = api_name.name if api_name else "UNKNOWN"
        own = (api_name.min_version, api_name.max_version) if api_name else (0, -1)
        low, high = api.min_version, api.max_version
        usable = min(high, own[1])
        versions = f"{low} to {high}" if high > low else f"{low}"
        yield f"\t{name}({api.api_key}): {versions} [usable: {usable}]"
