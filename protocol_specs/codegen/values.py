"""Python code for a single value: its type and default, and code to read, write and compare it."""

from protocol_specs.codegen.ladder import Lines, indent, ladder, starts_of
from protocol_specs.codegen.spec import NUMBER_CODES, FieldSpec, Range, StructSpec

METHODS = {
    "bool": "boolean",
    "int8": "int8",
    "int16": "int16",
    "error_code": "int16",
    "uint16": "uint16",
    "int32": "int32",
    "uint32": "uint32",
    "int64": "int64",
    "float64": "float64",
    "uuid": "uuid",
    "string": "string",
    "bytes": "byte_string",
    "records": "records",
}
"""Type → method of `Reader` and `Writer`, for a value without null before flexible versions."""

_PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "uuid": "bytes",
    "records": "Buffer",
}
_LOOP_NAMES = {"string": "text", "uuid": "uuid", "bytes": "data"}


def item_python_type(field: FieldSpec, names: dict[StructSpec, str]) -> str:
    """Return the Python type of the value, or of an array's item."""
    if field.struct is not None:
        return names[field.struct]
    return _PYTHON_TYPES.get(field.item_type, "int")


def python_type(field: FieldSpec, names: dict[StructSpec, str]) -> str:
    """Return the Python type of the attribute."""
    name = item_python_type(field, names)
    name = f"list[{name}]" if field.is_array else name
    return f"{name} | None" if field.is_optional else name


def constructor_parts(field: FieldSpec, names: dict[StructSpec, str]) -> tuple[str, str]:
    """Return (parameter with annotation and default, expression for the attribute)."""
    kind = python_type(field, names)
    if field.is_array and field.default is not None:
        if field.is_optional:  # None is a value here: null on the wire
            value = f"[] if isinstance({field.name}, tuple) else {field.name}"
            return f"{field.name}: {kind} | tuple[()] = ()", value
        return (
            f"{field.name}: {kind} | None = None",
            f"[] if {field.name} is None else {field.name}",
        )
    if field.default == {} and field.is_optional:  # None is null, and not the default
        value = f"{default(field, names)} if isinstance({field.name}, tuple) else {field.name}"
        return f"{field.name}: {kind} | tuple[()] = ()", value
    if field.default == {}:
        value = f"{kind}() if {field.name} is None else {field.name}"
        return f"{field.name}: {kind} | None = None", value
    return f"{field.name}: {kind} = {default(field, names)}", field.name


def default(field: FieldSpec, names: dict[StructSpec, str]) -> str:
    """Return the expression of the protocol's default; a new object if it is mutable."""
    if field.default is None:
        return "None"
    if field.is_array:
        return "[]"
    if field.struct is not None:
        return f"{names[field.struct]}()"
    if field.type == "uuid":
        return "ZERO_UUID"
    if field.type == "bytes":
        return 'b""'
    if field.type == "string":
        return f'"{field.default}"'
    return repr(field.default)


def is_set(field: FieldSpec, names: dict[StructSpec, str]) -> str:
    """Return the condition that the attribute differs from the default."""
    name = f"self.{field.name}"
    if field.struct is not None and not field.is_array:
        if field.nullable is None and field.tag is not None:
            return f"{name} is not None and {name} != {names[field.struct]}()"
        return (
            f"{name} is not None" if field.default is None else f"{name} != {default(field, names)}"
        )
    if field.default is None:
        return f"{name} is not None"
    if field.is_array:
        return f"({name} is None or {name})" if field.is_optional else name
    if field.type == "bool":
        return f"not {name}" if field.default else name
    return f"{name} != {default(field, names)}"


def read_lines(
    field: FieldSpec, scope: Range, flexible_from: int | None, names: dict[StructSpec, str]
) -> Lines:
    """Return lines that set `self.<name>` from `reader`, for every version of `scope`."""
    edges = breaks(field, flexible_from)
    if not field.is_array:
        return ladder(
            scope, edges, lambda version: [_read_value(field, version, flexible_from, names)]
        )
    lines = ladder(
        scope, edges, lambda version: [f"count = reader.{_count(field, version, flexible_from)}()"]
    )
    none = " if count >= 0 else None" if field.is_optional else ""
    code = NUMBER_CODES.get(field.item_type)
    if code is not None:
        return [*lines, f'self.{field.name} = reader.numbers(count, "{code}"){none}']
    lines.append(f"{field.name}: list[{item_python_type(field, names)}] = []")
    lines.append("for _ in range(count):")
    if field.struct is not None:
        items = [f"{field.name}.append({names[field.struct]}.read(reader, version))"]
    else:
        items = ladder(
            scope,
            {flexible_from or 0},
            lambda version: [
                f"{field.name}.append(reader.{_item_method(field, version, flexible_from)}())"
            ],
        )
    return [*lines, *indent(items), f"self.{field.name} = {field.name}{none}"]


def write_lines(
    field: FieldSpec,
    writer: str,
    scope: Range,
    flexible_from: int | None,
    names: dict[StructSpec, str],
) -> Lines:
    """Return lines that write `self.<name>` to the variable `writer`, for every version of
    `scope`.
    """
    name = f"self.{field.name}"
    edges = breaks(field, flexible_from)
    if field.struct is not None and not field.is_array:
        return ladder(scope, edges, lambda version: _write_struct(field, writer, version))
    if not field.is_array:
        return ladder(
            scope,
            edges,
            lambda version: [
                *_null_refused(field, version, names),
                f"{writer}.{_value_method(field, version, flexible_from)}({name})",
            ],
        )

    def count_lines(version: int) -> Lines:
        method = "compact_array_count" if _flexible(version, flexible_from) else "array_count"
        if field.nullable is not None and version in field.nullable:
            return [f"{writer}.{method}(-1 if {name} is None else len({name}))"]
        return [*_null_refused(field, version, names), f"{writer}.{method}(len({name}))"]

    lines = ladder(scope, edges, count_lines)
    items = f"{name} or []" if field.is_optional else name
    code = NUMBER_CODES.get(field.item_type)
    if code is not None:
        return [*lines, f'{writer}.numbers({items}, "{code}")']
    if field.struct is not None:
        loop = _snake(names[field.struct])
        body = [f"{loop}.write({writer}, version)"]
    else:
        loop = _LOOP_NAMES[field.item_type]
        body = ladder(
            scope,
            {flexible_from or 0},
            lambda version: [f"{writer}.{_item_method(field, version, flexible_from)}({loop})"],
        )
    return [*lines, f"for {loop} in {items}:", *indent(body)]


def breaks(field: FieldSpec, flexible_from: int | None) -> set[int]:
    """Return the versions at which the encoding of the value changes."""
    edges = starts_of(field.nullable)
    depends = field.is_array or field.type in ("string", "bytes", "records")
    return edges | {flexible_from} if depends and flexible_from is not None else edges


def _flexible(version: int, flexible_from: int | None) -> bool:
    return flexible_from is not None and version >= flexible_from


def _item_method(field: FieldSpec, version: int, flexible_from: int | None) -> str:
    compact = "compact_" if _flexible(version, flexible_from) and field.item_type != "uuid" else ""
    return compact + METHODS[field.item_type]


def _value_method(field: FieldSpec, version: int, flexible_from: int | None) -> str:
    method = METHODS[field.type]
    if field.type not in ("string", "bytes", "records"):
        return method
    compact = "compact_" if _flexible(version, flexible_from) else ""
    nullable = field.nullable is not None and version in field.nullable
    return f"{compact}{'nullable_' if nullable and field.type != 'records' else ''}{method}"


def _count(field: FieldSpec, version: int, flexible_from: int | None) -> str:
    compact = "compact_" if _flexible(version, flexible_from) else ""
    nullable = "nullable_" if field.nullable is not None and version in field.nullable else ""
    return f"{compact}{nullable}array_count"


def _read_value(
    field: FieldSpec, version: int, flexible_from: int | None, names: dict[StructSpec, str]
) -> str:
    if field.struct is None:
        return f"self.{field.name} = reader.{_value_method(field, version, flexible_from)}()"
    value = f"{names[field.struct]}.read(reader, version)"
    if field.nullable is not None and version in field.nullable:
        value += f" if reader.int8() {'>=' if field.tag is None else '>'} 0 else None"
    return f"self.{field.name} = {value}"


def _write_struct(field: FieldSpec, writer: str, version: int) -> Lines:
    name = f"self.{field.name}"
    if field.nullable is None or version not in field.nullable:
        return [f"{name}.write({writer}, version)"]
    return [
        f"if {name} is None:",
        f"    {writer}.int8({-1 if field.tag is None else 0})",
        "else:",
        f"    {writer}.int8(1)",
        f"    {name}.write({writer}, version)",
    ]


def _null_refused(field: FieldSpec, version: int, names: dict[StructSpec, str]) -> Lines:
    """Return lines that raise for None in a version without null, so that it is not written as
    empty.
    """
    if field.nullable is None or version in field.nullable:
        return []
    return [
        f"if self.{field.name} is None:",
        f'    raise null_not_carried("{field.name}", version)',
    ]


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)[1:]
