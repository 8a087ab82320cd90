"""Guards the layouts of released versions: the layout of a version never changes.

`protocol_specs/layouts.json` holds a digest of every version of every message: names, order, types,
null, tags and defaults of its fields. A test compares it with the specs, so that no edit changes a
version that clients use. `python -m protocol_specs.codegen --freeze` adds new versions and never
replaces a digest. The list is a file and not a comparison with the previous commit, so that it
works in a source archive and over several commits.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from protocol_specs.codegen.spec import MessageSpec, StructSpec

DIGEST_LETTERS = 12

Digests = dict[str, dict[str, str]]


def digests_of(messages: Iterable[MessageSpec]) -> Digests:
    """Return message → version (as text) → digest of the layout."""
    return {
        message.root.name: {
            str(version): _digest(message, version)
            for version in range(message.versions.first, message.versions.last + 1)
        }
        for message in messages
    }


def differences(frozen: Digests, current: Digests) -> list[str]:
    """Return the names of the frozen layouts that have changed."""
    return [
        f"{name} version {version}"
        for name, versions in frozen.items()
        for version, digest in versions.items()
        if current.get(name, {}).get(version) != digest
    ]


def with_new(frozen: Digests, current: Digests) -> Digests:
    """Return `frozen` with the messages and versions of `current` that it lacks."""
    new_layouts = {name: {**versions, **frozen.get(name, {})} for name, versions in current.items()}
    return {**frozen, **new_layouts}


def digests_text(frozen: Digests) -> str:
    """Return the text of the file, a message per line."""
    rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(frozen.items())]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _digest(message: MessageSpec, version: int) -> str:
    layout = [message.is_flexible(version), _layout(message.root, version)]
    text = json.dumps(layout, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LETTERS]


def _layout(struct: StructSpec, version: int) -> list[Any]:
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
