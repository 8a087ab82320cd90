"""JSON as a registry in Java reads and prints it; pure functions.

Keys keep their order, the last of two equal keys counts, and no blank stands between tokens.

Source: Jackson's JsonParser, JsonGenerator, JsonNode.toString.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from minibroker.kafka.java_numbers import double_to_text
from minibroker.registry.formats.limits import DEPTH_MAX, check_json
from minibroker.registry.formats.parsed_schema import InvalidSchemaError

_CONTROL: Final = re.compile(r"\\u00([01][0-9a-f])")
_STRING: Final = re.compile(r'["\\\x00-\x1f]')


def load(text: str, depth_max: int = DEPTH_MAX) -> Any:
    """Return the value of a JSON text. Raises InvalidSchemaError."""
    check_json(text, depth_max)
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidSchemaError("a string has half a surrogate pair, which is no text") from None
    except ValueError as error:
        raise InvalidSchemaError(f"it is no JSON ({error})") from error
    return value


def dump(value: Any) -> str:
    """Return the text of a value of JSON, as Jackson prints it."""
    if isinstance(value, str):
        return string(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{string(key)}:{dump(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(dump, value)) + "]"
    if isinstance(value, float):
        number = double_to_text(value)
        return number if number[-1].isdigit() else string(number)
    return json.dumps(value)


def string(text: str) -> str:
    """Return a string in quotes. Jackson prints control characters in capital digits."""
    if not _STRING.search(text):
        return f'"{text}"'
    quoted = json.dumps(text, ensure_ascii=False)
    return _CONTROL.sub(lambda digits: "\\u00" + digits.group(1).upper(), quoted)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
