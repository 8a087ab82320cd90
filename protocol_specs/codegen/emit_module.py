"""Makes a Python module of a spec file: imports, layouts, a class for each struct."""

from typing import NamedTuple

from protocol_specs.codegen.emit import StructEmitter, layout_name
from protocol_specs.codegen.ladder import Lines
from protocol_specs.codegen.spec import ApiSpec, MessageSpec, StoredRecord, StructSpec
from protocol_specs.codegen.text import banner, sentence

_IMPORTABLE = {
    "minibroker.kafka.protocol.message": (
        "JsonFields",
        "Message",
        "not_carried",
        "null_not_carried",
    ),
    "minibroker.kafka.protocol.primitives": ("ZERO_UUID", "Buffer", "Reader", "Writer"),
    "minibroker.kafka.protocol.versioned": ("VersionedMessage",),
}


class ClassPlan(NamedTuple):
    """A class of the module; `constants` are the class attributes of a root struct."""

    message: MessageSpec
    struct: StructSpec
    doc: str
    base: str
    constants: Lines


def api_source(api: ApiSpec) -> str:
    """Return `protocol/messages/<name>.py` for `apis/NN_name.json`."""
    body = [sentence(api.doc), *_notes(api.version_notes)]
    lines = banner(
        f"{api.api}: key {api.key}, versions {api.versions.first} to {api.versions.last}.",
        f"protocol_specs/apis/{api.path.name}",
        "\n".join(body),
    )
    names = _class_names(api.request, api.response)
    plans: list[ClassPlan] = []
    for message, side in ((api.request, "Request"), (api.response, "Answer")):
        constants = [f"API_KEY = {api.key}", *_constants(message)]
        plans += _plans(message, f"{side} of {api.api}.", "Message", constants)
    return _module(lines, plans, names)


def stored_source(record: StoredRecord) -> str:
    """Return `protocol/stored/<name>.py` for `stored/<name>.json`."""
    lines = banner(
        sentence(record.doc) or f"{record.name}.",
        f"protocol_specs/stored/{record.path.name}",
        "\n".join(_notes(record.version_notes)),
    )
    names = _class_names(*(side.message for side in record.sides))
    plans: list[ClassPlan] = []
    for side in record.sides:
        base = "VersionedMessage" if side.type is None else "Message"
        plans += _plans(side.message, side.doc, base, _constants(side.message))
    text = _module(lines, plans, names)
    types = [(side.type, side.message.root.name) for side in record.sides if side.type is not None]
    if types:
        rows = [f"    {number}: {name}," for number, name in types]
        text += "\n".join(["", "", "RECORDS = {", *rows, "}", '"""Type → class."""', ""])
    return text


def _plans(message: MessageSpec, doc: str, base: str, constants: Lines) -> list[ClassPlan]:
    return [
        ClassPlan(message, struct, doc, base, constants)
        if struct is message.root
        else ClassPlan(message, struct, sentence(struct.doc), "Message", [])
        for struct in message.structs
    ]


def _constants(message: MessageSpec) -> Lines:
    return [
        f"VERSIONS = ({message.versions.first}, {message.versions.last})",
        f"FLEXIBLE_FROM: int | None = {message.flexible_from}",
    ]


def _notes(version_notes: dict[str, str]) -> Lines:
    if not version_notes:
        return []
    return ["", "Versions:", *(f"{version}: {note}" for version, note in version_notes.items())]


def _module(lines: Lines, plans: list[ClassPlan], names: dict[StructSpec, str]) -> str:
    layouts: set[str] = set()
    body: Lines = []
    module_names: set[str] = set()
    for plan in plans:
        if names[plan.struct] in module_names:  # both sides use it
            continue
        module_names.add(names[plan.struct])
        emitter = StructEmitter(plan.message, plan.struct, names, layouts)
        constants = plan.constants + _json_fields(plan.struct, names)
        body += ["", "", *emitter.class_lines(plan.base, constants, plan.doc)]
    text = "\n".join(body)
    if layouts:
        lines += ["from struct import Struct", ""]
    for module, importable in _IMPORTABLE.items():
        used_names = [name for name in importable if _mentions(text, name)]
        if used_names:
            lines.append(f"from {module} import {', '.join(used_names)}")
    if layouts:
        lines.append("")
        lines += [f'{layout_name(codes)} = Struct(">{codes}")' for codes in sorted(layouts)]
    return "\n".join(lines) + "\n" + text + "\n"


def _json_fields(struct: StructSpec, names: dict[StructSpec, str]) -> Lines:
    """Return the constant that `minibroker/kafka/protocol/json_form.py` reads.

    It has name, type, first and last version of each field, and whether the field is tagged.
    """
    rows = [
        f'    ("{field.name}", "{names[field.struct] if field.struct else field.item_type}",'
        f" {field.versions.first}, {field.versions.last}, {field.tag is not None}),"
        for field in struct.fields
    ]
    return ["JSON_FIELDS: JsonFields = (", *rows, ")"] if rows else []


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


def _class_names(*messages: MessageSpec) -> dict[StructSpec, str]:
    """Return the class of each struct: Kafka's name, with the side in front if the two sides
    differ.
    """
    names: dict[StructSpec, str] = {}
    by_name: dict[str, list[tuple[StructSpec, str]]] = {}
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
