"""The layouts that are in use out there: what a version meant once, it means for ever.

`protocol_specs/layouts.json` holds a digest of every version of every message: names, order, types,
null, tags and defaults of its fields. A test compares it with the specs, so that no edit changes a
version that clients speak. `python -m minibroker.codegen --freeze` adds versions that are new and
never replaces a digest. (The list is a file, and not a look at the previous commit, so that it
works in a source archive and over several commits at once.)
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from minibroker.codegen.spec import Message, Struct

DIGEST_LETTERS = 12

Digests = dict[str, dict[str, str]]


def digests_of(messages: Iterable[Message]) -> Digests:
    """Message → version (as text) → digest of the layout."""
    return {
        message.root.name: {
            str(version): _digest(message, version)
            for version in range(message.versions.first, message.versions.last + 1)
        }
        for message in messages
    }


def differences(frozen: Digests, current: Digests) -> list[str]:
    """Return the frozen layouts that changed; empty when all still hold."""
    return [
        f"{name} version {version}"
        for name, versions in frozen.items()
        for version, digest in versions.items()
        if current.get(name, {}).get(version) != digest
    ]


def with_new(frozen: Digests, current: Digests) -> Digests:
    """`frozen` with the messages and versions added that it did not know."""
    added = {name: {**versions, **frozen.get(name, {})} for name, versions in current.items()}
    return {**frozen, **added}


def digests_text(frozen: Digests) -> str:
    """The file's text, one message a line."""
    rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(frozen.items())]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _digest(message: Message, version: int) -> str:
    layout = [message.is_flexible(version), _layout(message.root, version)]
    text = json.dumps(layout, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LETTERS]


def _layout(struct: Struct, version: int) -> list[Any]:
    return [
        [
            field.name,
            "struct" if field.struct else field.item_type,
            field.is_array,
            field.nullable is not None and version in field.nullable,
            field.tag,
            repr(field.default),
            _layout(field.struct, version) if field.struct else None,
        ]
        for field in struct.fields
        if version in field.versions
    ]
