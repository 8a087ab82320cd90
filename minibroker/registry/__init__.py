"""A schema registry beside the broker; loaded only when `serve --registry` asks for it."""

from minibroker.kafka.errors import ConfigError


def check_libraries(option: str) -> None:
    """Raise ConfigError where a library of the registry is missing, which `option` needs."""
    try:
        import minibroker.registry.service  # noqa: F401, PLC0415  only who asks pays
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{option} needs {error.name}: pip install 'minibroker[registry]'"
        ) from error
