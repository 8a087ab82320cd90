"""Makes the tables of the protocol: error codes, keys of APIs, and the names of both.

Each function takes data of `protocol_specs/` and returns the text of a module. The text is final:
`__main__` writes or compares it, and no formatter changes it.
"""

from typing import Any

from protocol_specs.codegen.spec import ApiSpec
from protocol_specs.codegen.text import banner, wrap_text


def error_codes_source(table: dict[str, Any]) -> str:
    """Return `kafka/error_codes.py` for `errors.json`: the enum, retriable codes, meanings."""
    errors = table["errors"]
    lines = banner(
        "Error codes of the Kafka protocol: the numbers that answers carry.",
        "protocol_specs/errors.json",
        "Names and numbers are Kafka's. `retriable`: Kafka's own clients try again by themselves;\n"
        "`meaning`: one sentence for a log line or a person.",
    )
    lines += ["import logging", "from enum import IntEnum", ""]
    lines += ["logger = logging.getLogger(__name__)", "", "", "class ErrorCode(IntEnum):"]
    lines += ['    """One number per outcome; 0 is success, -1 the error nobody foresaw."""', ""]
    lines += [f"    {error['name']} = {error['code']}" for error in errors]
    lines += [
        "",
        "    @property",
        "    def retriable(self) -> bool:",
        '        """Kafka\'s clients repeat the request by themselves after this code."""',
        "        return self in _RETRIABLE",
        "",
        "    @property",
        "    def meaning(self) -> str:",
        '        """Return one sentence about the cause."""',
        "        return _MEANINGS[self]",
        *_MISSING_METHOD.split("\n"),
    ]
    codes = ", ".join(str(error["code"]) for error in errors if error["retriable"])
    lines += ["_RETRIABLE = frozenset(", "    {", *wrap_text(codes, indent=8), "    }", ")", ""]
    lines += ["_MEANINGS = {"]
    lines += [f"    {error['code']}: {error['meaning']!r}," for error in errors]
    lines += ["}", ""]
    return "\n".join(lines)


def api_keys_source(apis: list[ApiSpec]) -> str:
    """Return `minibroker/kafka/protocol/api_keys.py`: a constant per key, the table, the loader."""
    lines = banner(
        "Keys of the Kafka protocol's APIs, and where their messages are.",
        "protocol_specs/apis/",
        "The table holds what the protocol has; what is served stands in the handlers' registry.",
    )
    lines += ["from importlib import import_module", "from typing import Any, NamedTuple", ""]
    lines += [f"{api.name.upper()} = {api.key}" for api in sorted(apis, key=_by_key)]
    lines += [*_API_CLASS.split("\n"), "APIS: dict[int, Api] = {"]
    for api in sorted(apis, key=_by_key):
        first, last = api.versions
        row = f'{api.key}, "{api.api}", "{api.name}", {first}, {last}, {api.flexible_from}'
        lines.append(f"    {api.key}: Api({row}),")
    return "\n".join([*lines, "}", *_LOADER.rstrip().split("\n"), ""])


def names_source(apis: list[ApiSpec], table: dict[str, Any]) -> str:
    """Return `minibroker/rig/names.py`: names of APIs and errors as types, which editors
    complete.
    """
    lines = banner(
        "Names that faults and waits take, as types: an editor completes them.",
        "protocol_specs/",
        "For type checkers only; `rig/faults.py` checks names at run time.",
        has_long_lines=False,
    )
    lines += ["from typing import Literal", ""]
    apis_by_name = sorted(api.api for api in apis)
    errors = [error["name"] for error in table["errors"] if error["code"]]
    for name, values in (("ApiName", apis_by_name), ("ErrorName", errors)):
        values_text = ", ".join(f'"{value}"' for value in values)
        lines += [f"{name} = Literal[", *wrap_text(values_text, indent=4), "]", ""]
    return "\n".join(lines)


def _by_key(api: ApiSpec) -> int:
    return api.key


_MISSING_METHOD = '''
    @classmethod
    def _missing_(cls, value: object) -> "ErrorCode | None":
        """Return UNKNOWN_SERVER_ERROR for a number of a newer Kafka, as Kafka's Errors.forCode."""
        if not isinstance(value, int):
            return None
        logger.warning("error code %d is not known, it counts as UNKNOWN_SERVER_ERROR", value)
        return cls.UNKNOWN_SERVER_ERROR

'''

_API_CLASS = '''

class Api(NamedTuple):
    """One API: Kafka's name, our module in `protocol/messages`, first and last version."""

    key: int
    name: str
    module: str
    min_version: int
    max_version: int
    flexible_from: int | None

'''

_LOADER = '''

def load_messages(api_key: int) -> tuple[Any, Any]:
    """Imports the messages of one API, at its first use → (request class, response class).

    Raises KeyError for a key that no API has.
    """
    api = APIS[api_key]
    module = import_module(f"minibroker.kafka.protocol.messages.{api.module}")
    return getattr(module, f"{api.name}Request"), getattr(module, f"{api.name}Response")
'''
