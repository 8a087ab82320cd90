"""Tables of the protocol as Python source: `error_codes.py` and `protocol/api_keys.py`.

Each function takes data read from `protocol_specs/` and gives back the text of one module. The
text is final: `__main__` writes it or compares it, nothing reformats it.
"""

from typing import Any

from minibroker.codegen.text import banner, wrapped


def error_codes_source(table: dict[str, Any]) -> str:
    """`errors.json` → `minibroker/error_codes.py`: the enum, the retriable codes, the meanings."""
    errors = table["errors"]
    lines = banner(
        "Error codes of the Kafka protocol: the numbers that answers carry.",
        "protocol_specs/errors.json",
        "Names and numbers are Kafka's. `retriable`: Kafka's own clients try again by themselves;\n"
        "`meaning`: one sentence for a log line or a person.",
    )
    lines += ["from enum import IntEnum", "", "", "class ErrorCode(IntEnum):"]
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
        '        """One sentence about the cause."""',
        "        return _MEANINGS[self]",
        "",
        "",
    ]
    codes = ", ".join(str(error["code"]) for error in errors if error["retriable"])
    lines += ["_RETRIABLE = frozenset(", "    {", *wrapped(codes, indent=8), "    }", ")", ""]
    lines += ["_MEANINGS = {"]
    lines += [f"    {error['code']}: {error['meaning']!r}," for error in errors]
    lines += ["}", ""]
    return "\n".join(lines)
