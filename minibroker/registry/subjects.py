"""Names of subjects, and of the contexts they are in.

    orders-value             in the default context `.`
    :.staging:orders-value   in the context `.staging`
    :.staging:               the context itself, where a configuration or a mode is set

A context is a registry of its own: it has its own ids, and the same text may have another id there.
"""

from __future__ import annotations

from typing import Final

from minibroker.registry.errors import invalid_subject

DEFAULT: Final = "."
"""The default context."""
EVERY_CONTEXT: Final = ":*:"
"""The prefix of a search that goes through all contexts."""
NAME_BYTES_MAX: Final = 4096
_RESERVED: Final = frozenset({"__GLOBAL", "__EMPTY"})


def context_of(subject: str) -> str:
    """Return the context that a qualified name is in."""
    if subject.startswith(":."):
        context, colon, _ = subject[1:].partition(":")
        if colon:
            return context
    return DEFAULT


def prefix_of(context: str) -> str:
    """Return the beginning of all names in a context."""
    return "" if context == DEFAULT else f":{context}:"


def name_within(subject: str) -> str:
    """Return a name without its context."""
    context = context_of(subject)
    return subject if not subject.startswith(f":{context}:") else subject[len(context) + 2 :]


def qualified(subject: str, context: str = DEFAULT) -> str:
    """Return the full name of a subject that a caller in `context` means. `:.:a` is `a`."""
    if subject.startswith(":.") and ":" in subject[1:]:
        own = context_of(subject)
        return f"{prefix_of(own)}{name_within(subject)}"
    return f"{prefix_of(context)}{subject}"


def context_named(text: str) -> str:
    """Return the context of a path: `.staging`, `staging` and `:.staging:` are the same."""
    context = text.strip(":")
    return context if context.startswith(DEFAULT) else f".{context}"


def check_subject(subject: str) -> None:
    """Raise RegistryError(42208) for a name that no subject can have."""
    name = name_within(subject)
    if (
        not name
        or name in _RESERVED
        or len(subject.encode("utf-8", "replace")) > NAME_BYTES_MAX
        or any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in subject)
    ):
        raise invalid_subject(subject)
