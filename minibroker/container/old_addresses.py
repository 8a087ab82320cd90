"""Addresses and commands of wurstmeister/kafka, and of Kafka before 3.0, as listeners.

    KAFKA_ADVERTISED_HOST_NAME=localhost  ─► advertised.listeners=PLAINTEXT://localhost:9092
    HOSTNAME_COMMAND='hostname -i'        ─► the output, for _{HOSTNAME_COMMAND} in other variables
    BROKER_ID_COMMAND, KAFKA_NODE_ID_COMMAND … ─► broker.id, node.id … (bitnami's, too)

A command runs in a shell, as the image's user, before the start. It fails the start if it fails, or
prints nothing.

Source: start-kafka.sh of wurstmeister/kafka-docker; Kafka 2.8 KafkaConfig, for the old keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_COMMANDS: Final = {
    "BROKER_ID_COMMAND": "KAFKA_BROKER_ID",
    "KAFKA_BROKER_ID_COMMAND": "KAFKA_BROKER_ID",
    "KAFKA_CONTROLLER_QUORUM_VOTERS_COMMAND": "KAFKA_CONTROLLER_QUORUM_VOTERS",
    "KAFKA_NODE_ID_COMMAND": "KAFKA_NODE_ID",
    "RACK_COMMAND": "KAFKA_BROKER_RACK",
}
"""Variable with a command → the variable that gets its output."""
_INSERTED: Final = ("HOSTNAME_COMMAND", "PORT_COMMAND")
"""Variables with a command whose output replaces `_{NAME}` in other variables."""
_COMMAND_SECONDS: Final = 60
_OUTPUT_MAX: Final = 4096
_ADDRESSES: Final = (
    "KAFKA_ADVERTISED_HOST_NAME",
    "KAFKA_ADVERTISED_PORT",
    "KAFKA_HOST_NAME",
    "KAFKA_PORT",
)
_PORT: Final = "9092"
_LISTENERS: Final = frozenset({"KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"})


def put_outputs(variables: MutableMapping[str, str]) -> None:
    """Run the commands of variables, and put their output where it belongs. Raises ConfigError."""
    for name in _INSERTED:
        command = variables.pop(name, "")
        if not command:
            continue
        output = _run(name, command)
        place = f"_{{{name}}}"
        for variable, value in variables.items():
            if variable.startswith("KAFKA_") and place in value:
                variables[variable] = value.replace(place, output)
        if name == "HOSTNAME_COMMAND" and not _LISTENERS & variables.keys():
            variables.setdefault("KAFKA_ADVERTISED_HOST_NAME", output)
    for name, target in _COMMANDS.items():
        command = variables.pop(name, "")
        if command and target not in variables:
            variables[target] = _run(name, command)


def put_listeners(variables: MutableMapping[str, str]) -> list[str]:
    """Replace host and port by `listeners` and `advertised.listeners`; return sentences for the
    log.

    Listeners are stronger than the old keys.
    """
    addresses = {name: variables.pop(name) for name in _ADDRESSES if name in variables}
    # Kubernetes sets KAFKA_PORT=tcp://10.0.0.1:9092 for a service with the name kafka.
    old = {name: value for name, value in addresses.items() if not value.startswith("tcp://")}
    if not old:
        return []
    strong = sorted(_LISTENERS & variables.keys())
    if "KAFKA_ADVERTISED_LISTENERS" in strong:
        return [f"{', '.join(old)}: no effect, {strong[0]} is set, too, and stronger"]
    port = old.get("KAFKA_PORT", _PORT)
    host = old.get("KAFKA_HOST_NAME", "")
    variables.setdefault("KAFKA_LISTENERS", f"PLAINTEXT://{host}:{port}")
    if old.keys() & {"KAFKA_ADVERTISED_HOST_NAME", "KAFKA_ADVERTISED_PORT"}:
        advertised_host = (
            old.get("KAFKA_ADVERTISED_HOST_NAME", host),
            old.get("KAFKA_ADVERTISED_PORT", port),
        )
        variables["KAFKA_ADVERTISED_LISTENERS"] = "PLAINTEXT://{}:{}".format(*advertised_host)
    return []


def _run(variable: str, command: str) -> str:
    """Return what a command prints. Raises ConfigError."""
    import subprocess  # noqa: PLC0415  seldom asked for

    try:
        done = subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{variable}={command}: {error}") from None
    output = done.stdout[:_OUTPUT_MAX].decode("utf-8", "replace").strip()
    if done.returncode or not output:
        error_text = done.stderr[:_OUTPUT_MAX].decode("utf-8", "replace").strip().replace("\n", " ")
        raise ConfigError(
            f"{variable}={command}: it ended with code {done.returncode} and printed "
            f"{output or 'nothing'!r} ({error_text or 'no error'}); expected a line with the "
            "value. Set the variable that gets it, and leave out the command"
        )
    return output
