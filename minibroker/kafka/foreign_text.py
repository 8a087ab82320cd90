"""Foreign text on its way to a person: names of topics, groups and clients, in lines and pages.

Such a name may have 32,767 bytes, a newline with a made-up line behind it, or escape sequences that
a terminal obeys.
"""

from __future__ import annotations


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


def shorten(text: str, characters_max: int) -> str:
    """Return the first characters of the text, and how many more there are."""
    if len(text) <= characters_max:
        return text
    return f"{text[:characters_max]}… ({len(text) - characters_max} characters more)"
