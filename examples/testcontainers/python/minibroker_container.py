"""`MinibrokerContainer`: minibroker as a container of Testcontainers.

    with MinibrokerContainer(topics=["orders:3"]) as kafka:
        rule = FaultRule(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
        add_fault.sync(client=kafka.control, body=rule)
        run_my_service(bootstrap_servers=kafka.bootstrap)

`minibroker_control` is the client that is generated from the description of the control API.
Clients of this machine use `bootstrap`; containers of the same network use NAME:19092.
"""

import secrets
from collections.abc import Iterable

from minibroker_control import AuthenticatedClient
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy

CLIENT_PORT, NETWORK_PORT, CONTROL_PORT = 9092, 19092, 9644
START_SCRIPT = "/etc/kafka/minibroker-start.sh"
COMMAND = ["sh", "-c", f"while [ ! -s {START_SCRIPT} ]; do sleep 0.05; done; exec {START_SCRIPT}"]
"""The port of this machine is known once the container runs: only then it gets its start script."""


def variables(topics: Iterable[str], token: str) -> dict[str, str]:
    """Return the container's variables. `token`: what the control API asks of its callers."""
    return {
        "KAFKA_LISTENERS": f"PLAINTEXT://:{CLIENT_PORT},NETWORK://:{NETWORK_PORT}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,NETWORK:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "NETWORK",
        "KAFKA_CREATE_TOPICS_SEPARATOR": ";",
        "KAFKA_CREATE_TOPICS": ";".join(topics),
        "MINIBROKER_CONTROL": f"0.0.0.0:{CONTROL_PORT}",
        "MINIBROKER_CONTROL_TOKEN": token,
    }


def start_script(host: str, port: int, network_name: str = "$(hostname)") -> str:
    """Return the script that starts the broker, which clients reach at HOST:PORT."""
    return (
        "#!/bin/sh\n"
        f"export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{host}:{port},"
        f"NETWORK://{network_name}:{NETWORK_PORT}\n"
        "exec /etc/kafka/docker/run\n"
    )


class MinibrokerContainer(DockerContainer):
    """A broker in a container.

    Args:
        image: of `docker build -t minibroker .`.
        topics: `"orders"`, `"orders:3"`, `"orders:3:cleanup.policy=compact"`.
        more: arguments of `DockerContainer`.
    """

    def __init__(
        self, image: str = "minibroker:latest", *, topics: Iterable[str] = (), **more
    ) -> None:
        super().__init__(image, **more)
        self._token = secrets.token_hex(16)
        self.with_exposed_ports(CLIENT_PORT, CONTROL_PORT)
        self.with_envs(**variables(topics, self._token))
        self.with_command(COMMAND)

    def start(self, timeout_s: int = 60) -> "MinibrokerContainer":
        """Start the container; return once clients succeed. Raises TimeoutError."""
        super().start()
        names = self._network_aliases or ["$(hostname)"]
        script = start_script(
            self.get_container_host_ip(), self.get_exposed_port(CLIENT_PORT), names[0]
        )
        self.copy_into_container(script.encode(), START_SCRIPT, 0o755)
        ready = HttpWaitStrategy(CONTROL_PORT, "/health/ready")
        ready.with_startup_timeout(timeout_s).wait_until_ready(self)
        return self

    @property
    def bootstrap(self) -> str:
        """Return HOST:PORT for clients of this machine."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(CLIENT_PORT)}"

    @property
    def control(self) -> AuthenticatedClient:
        """Return a client of the control API: faults, the clock, seeds, records, waits."""
        address = f"{self.get_container_host_ip()}:{self.get_exposed_port(CONTROL_PORT)}"
        return AuthenticatedClient(base_url=f"http://{address}", token=self._token)
