"""Numbers in texts as Java reads and prints them, which is not how Python does; pure functions.

Python takes `1_000`, `inf` and `nan`, and Java does not; Java takes `0.5d` and `0x1p-1`. Values of
configurations and quotas go through here.

Source: String.trim, Integer.parseInt, Long.parseLong, Double.parseDouble,
Double.toString.
"""

from __future__ import annotations

import re
from typing import Final

_BLANKS: Final = "".join(map(chr, range(0x21)))
"""String.trim removes these: the space, and every character below it."""
_DIGITS_MAX: Final = 20
"""A number of 64 bits has no more digits, zeros in front of it not counted."""
# Texts, which `re` compiles with the first number that is not plain: a start reads none.
_EXPONENT = r"e[+-]?[0-9]+"
_DECIMAL: Final = rf"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:{_EXPONENT})?[fd]?"
_HEXADECIMAL: Final = r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+[fd]?"
_SCIENTIFIC_FROM: Final = 1e7
"""Double.toString turns to scientific notation from here on."""
_SCIENTIFIC_BELOW: Final = 1e-3
"""Double.toString turns to scientific notation below here."""
_WORDS: Final = r"[+-]?(?:NaN|Infinity)"


def trim(text: str) -> str:
    """Return the text without spaces and control characters at both ends."""
    return text.strip(_BLANKS)


def parse_integer(text: str, bits: int) -> int | None:
    """Return a signed number of at most `bits` bits, None for anything else. Nothing is trimmed."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    # Digits of any script count, but Java sees the halves of those beyond 16 bits.
    if not digits.isdecimal() or max(digits) > "\uffff":
        return None
    significant = digits.lstrip("0")
    if len(significant) > _DIGITS_MAX:
        return None
    number = int(significant or "0")
    if text[0] == "-":
        number = -number
    limit = 1 << (bits - 1)
    return number if -limit <= number < limit else None


def parse_double(text: str) -> float:
    """Return the number of a text, which may have spaces around it. Raises ValueError."""
    number_text = trim(text)
    if _is_plain(number_text):
        return float(number_text)
    if re.fullmatch(_HEXADECIMAL, number_text, re.IGNORECASE):
        return _from_hex(number_text.rstrip("dDfF") if number_text[-1] in "dDfF" else number_text)
    if re.fullmatch(_DECIMAL, number_text, re.IGNORECASE):
        return float(number_text.rstrip("dDfF"))
    if re.fullmatch(_WORDS, number_text):
        return float(number_text)
    raise ValueError(f"not a number: {text!r}")


def _is_plain(text: str) -> bool:
    """Return whether a text is digits with one point between them, as `0.5`. Each start reads some
    of these, and a pattern takes longer to compile than all of them to read.
    """
    whole, _, fraction = text.partition(".")
    return text.isascii() and whole.isdigit() and fraction.isdigit()


def _from_hex(text: str) -> float:
    """Return the number of a hexadecimal text. One that is too large is infinite."""
    try:
        return float.fromhex(text)
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def double_to_text(value: float) -> str:
    """Return a number as Java's Double.toString: `0.5`, `1.0E7`, `1.7976931348623157E308`,
    `Infinity`.
    """
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value != value:  # noqa: PLR0124  the one number that differs from itself
        return "NaN"
    if value == 0 or _SCIENTIFIC_BELOW <= abs(value) < _SCIENTIFIC_FROM:
        return repr(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    for digits in range(17):
        mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
        if float(f"{mantissa}e{exponent}") == value:
            break
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
