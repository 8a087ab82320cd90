"""Foreign text on its way to a person: names of topics, groups and clients, keys of records.

Such a name may have 32,767 bytes, a newline with a made-up line behind it, or escape sequences that
a terminal obeys.
"""

from __future__ import annotations

from codecs import getincrementaldecoder


def printable(text: str) -> str:
    """Return the text with an escape in place of each character that has no glyph.

    Such are a control character, half a surrogate pair and a change of the direction of writing;
    they become `\\n`, `\\x1b` or `\\u202e`.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def key_text(start: bytes, *, is_cut: bool) -> str:
    """Return the start of a record's key for people: its text, or its bytes in hexadecimal.

    `is_cut`: the key goes on, and its start may end inside of a character.
    """
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    text = decoder.decode(start, final=not is_cut)
    if not text.isprintable():
        text = f"0x{start.hex()}"
    return f"{text}…" if is_cut else text


def shorten(text: str, characters_max: int) -> str:
    """Return the first characters of the text, and how many more there are."""
    if len(text) <= characters_max:
        return text
    return f"{text[:characters_max]}… ({len(text) - characters_max} characters more)"
