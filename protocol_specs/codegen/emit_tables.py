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
    lines += ["from __future__ import annotations", "", "import logging", ""]
    lines += ["TYPE_CHECKING = False", "if TYPE_CHECKING:", "    from typing import ClassVar", ""]
    lines += ["logger = logging.getLogger(__name__)", "", "", "class ErrorCode(int):"]
    lines += ['    """One number per outcome; 0 is success, -1 the error nobody foresaw."""', ""]
    lines += [f"    {error['name']}: ClassVar[ErrorCode]" for error in errors]
    lines += _ERROR_METHODS.split("\n")
    codes = ", ".join(str(error["code"]) for error in errors if error["retriable"])
    lines += ["_RETRIABLE = frozenset(", "    {", *wrap_text(codes, indent=8), "    }", ")", ""]
    lines += ["_MEANINGS = {"]
    lines += [f"    {error['code']}: {error['meaning']!r}," for error in errors]
    lines += ["}", "", "_NUMBERS = {"]
    lines += [f'    "{error["name"]}": {error["code"]},' for error in errors]
    lines += [*_ERROR_CODES_OF_NUMBERS.split("\n")]
    return "\n".join(lines)


def api_keys_source(apis: list[ApiSpec]) -> str:
    """Return `minibroker/kafka/protocol/api_keys.py`: a constant per key, the table, the loader."""
    lines = banner(
        "Keys of the Kafka protocol's APIs, and where their messages are.",
        "protocol_specs/apis/",
        "The table holds what the protocol has; what is served stands in the handlers' registry.",
    )
    lines += ["from importlib import import_module", "from typing import Any", ""]
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


_ERROR_METHODS = '''
    name: str
    """Kafka's name of it."""

    def __new__(cls, number: int) -> ErrorCode:
        """Return the code of a number, UNKNOWN_SERVER_ERROR for that of a newer Kafka.

        Raises ValueError for anything but a number. Source: Kafka's Errors.forCode.
        """
        code = _BY_NUMBER.get(number)
        if code is None:
            if not isinstance(number, int):
                raise ValueError(f"{number!r} is not an error code")
            logger.warning("error code %d is not known, it counts as UNKNOWN_SERVER_ERROR", number)
            return cls.UNKNOWN_SERVER_ERROR
        return code

    def __reduce__(self) -> tuple[type[ErrorCode], tuple[int]]:
        """Return what copies and pickles make of it: the same object."""
        return ErrorCode, (int(self),)

    def __repr__(self) -> str:
        return f"<ErrorCode.{self.name}: {int(self)}>"

    def __str__(self) -> str:
        return str(int(self))

    @property
    def retriable(self) -> bool:
        """Kafka's clients repeat the request by themselves after this code."""
        return self in _RETRIABLE

    @property
    def meaning(self) -> str:
        """Return one sentence about the cause."""
        return _MEANINGS[self]


'''

_ERROR_CODES_OF_NUMBERS = '''}
_BY_NUMBER: dict[int, ErrorCode] = {}


def _add(name: str, number: int) -> ErrorCode:
    code = int.__new__(ErrorCode, number)
    code.name = name
    _BY_NUMBER[number] = code
    setattr(ErrorCode, name, code)
    return code


ERROR_CODES: dict[str, ErrorCode] = {name: _add(name, number) for name, number in _NUMBERS.items()}
"""Name → code. IntEnum would make them of the class itself, in 11 M instructions of each start."""
'''

_API_CLASS = '''

class Api:
    """One API: Kafka's name, our module in `protocol/messages`, first and last version."""

    __slots__ = ("flexible_from", "key", "max_version", "min_version", "module", "name")

    def __init__(  # noqa: PLR0917  the columns of a table
        self,
        key: int,
        name: str,
        module: str,
        min_version: int,
        max_version: int,
        flexible_from: int | None,
    ) -> None:
        self.key = key
        self.name = name
        self.module = module
        self.min_version = min_version
        self.max_version = max_version
        self.flexible_from = flexible_from

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
