"""A spec file as a whole Python module: imports, layouts, one class per struct."""

from minibroker.codegen.emit import StructEmitter, layout_name
from minibroker.codegen.ladder import Lines
from minibroker.codegen.spec import Api, Message, StoredRecord, Struct
from minibroker.codegen.text import banner, sentence

_IMPORTABLE = {
    "minibroker.protocol.message": ("Message", "not_carried", "null_not_carried"),
    "minibroker.protocol.primitives": ("ZERO_UUID", "Buffer", "Reader", "Writer"),
}


def api_source(api: Api) -> str:
    """`apis/NN_name.json` → `protocol/messages/<name>.py`."""
    body = [sentence(api.doc), *_notes(api.version_notes)]
    lines = banner(
        f"{api.api}: key {api.key}, versions {api.versions.first} to {api.versions.last}.",
        f"protocol_specs/apis/{api.path.name}",
        "\n".join(body),
    )
    names = _class_names(api.request, api.response)
    classes: list[tuple[Message, Struct, Lines, str]] = []
    for message, side in ((api.request, "Request"), (api.response, "Answer")):
        constants = [f"API_KEY = {api.key}", *_constants(message)]
        for struct in message.structs:
            is_root = struct is message.root
            doc = f"{side} of {api.api}." if is_root else sentence(struct.doc)
            classes.append((message, struct, constants if is_root else [], doc))
    return _module(lines, classes, names)


def stored_source(record: StoredRecord) -> str:
    """`stored/<name>.json` → `protocol/stored/<name>.py`."""
    lines = banner(
        sentence(record.doc) or f"{record.name}.",
        f"protocol_specs/stored/{record.path.name}",
        "\n".join(_notes(record.version_notes)),
    )
    names = _class_names(*record.messages)
    classes = [
        (
            message,
            struct,
            _constants(message) if struct is message.root else [],
            "The record itself; its version is the int16 in front of it."
            if struct is message.root
            else sentence(struct.doc),
        )
        for message in record.messages
        for struct in message.structs
    ]
    return _module(lines, classes, names)


def _constants(message: Message) -> Lines:
    return [
        f"VERSIONS = ({message.versions.first}, {message.versions.last})",
        f"FLEXIBLE_FROM: int | None = {message.flexible_from}",
    ]


def _notes(version_notes: dict[str, str]) -> Lines:
    if not version_notes:
        return []
    return ["", "Versions:", *(f"{version}: {note}" for version, note in version_notes.items())]


def _module(
    lines: Lines, classes: list[tuple[Message, Struct, Lines, str]], names: dict[Struct, str]
) -> str:
    layouts: set[str] = set()
    body: Lines = []
    written: set[str] = set()
    for message, struct, constants, doc in classes:
        if names[struct] in written:  # both sides use it
            continue
        written.add(names[struct])
        emitter = StructEmitter(message, struct, names, layouts)
        body += ["", "", *emitter.class_lines(constants, doc)]
    text = "\n".join(body)
    if layouts:
        lines += ["from struct import Struct", ""]
    for module, importable in _IMPORTABLE.items():
        used = [name for name in importable if _mentions(text, name)]
        lines.append(f"from {module} import {', '.join(used)}")
    if layouts:
        lines.append("")
        lines += [f'{layout_name(codes)} = Struct(">{codes}")' for codes in sorted(layouts)]
    return "\n".join(lines) + text + "\n"


def _mentions(text: str, name: str) -> bool:
    words = (
        f"{name}(",
        f"({name}",
        f" {name} ",
        f": {name}",
        f"= {name}\n",
        f"[{name}",
        f" {name}:",
        f" {name},",
    )
    return any(word in text for word in words)


def _class_names(*messages: Message) -> dict[Struct, str]:
    """Kafka's struct names; one that two sides use differently gets the side in front."""
    names: dict[Struct, str] = {}
    by_name: dict[str, list[tuple[Struct, str]]] = {}
    for message in messages:
        for struct in message.structs:
            side = next(
                (s for s in ("Request", "Response", "Key") if message.root.name.endswith(s)),
                "Value",
            )
            by_name.setdefault(struct.name, []).append((struct, side))
    for name, uses in by_name.items():
        same = all(struct.shape() == uses[0][0].shape() for struct, _ in uses)
        for struct, side in uses:
            names[struct] = name if same else side + name
    return names
