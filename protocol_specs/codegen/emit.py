"""A struct of a spec as a Python class: constructor, `read`, `write`.

Neighbouring numbers of fixed size are packed and unpacked together, with a precompiled
`struct.Struct` for each combination that a version needs. Every other field is one call.
`values.py` has the code for a single value; this module assembles the class.
"""

from protocol_specs.codegen import values
from protocol_specs.codegen.ladder import Lines, indent, ladder, starts_of
from protocol_specs.codegen.spec import NUMBER_CODES, FieldSpec, MessageSpec, Range, StructSpec
from protocol_specs.codegen.text import LINE_LENGTH, sentence


class StructEmitter:
    """Makes the class of one struct; collects the layouts that it needs in `layouts`."""

    def __init__(
        self,
        message: MessageSpec,
        struct: StructSpec,
        names: dict[StructSpec, str],
        layouts: set[str],
    ) -> None:
        self.struct = struct
        self.scope = struct.versions
        self.names = names
        self.layouts = layouts
        self.flexible_from = message.flexible_from
        self.never_flexible = not message.is_flexible(self.scope.last)
        self.always_flexible = message.is_flexible(self.scope.first)

    def class_lines(self, base: str, constants: Lines, doc: str) -> Lines:
        """Return the whole class; `constants` are the class attributes of a root struct."""
        name = self.names[self.struct]
        lines = [f"class {name}({base}):", f'    """{doc}"""', ""]
        slots = ", ".join(f'"{field.name}"' for field in self.struct.fields)
        comma = "," if len(self.struct.fields) == 1 else ""
        lines += [f"    __slots__ = ({slots}{comma})", *indent(constants), ""]
        lines += indent(self._constructor())
        lines += ["", *indent(self._read()), "", *indent(self._write())]
        return lines

    def _constructor(self) -> Lines:
        if not self.struct.fields:
            return ["def __init__(self) -> None:", '    """No fields."""']
        lines = ["def __init__(", "    self,", "    *,"]
        body: Lines = []
        for field in self.struct.fields:
            parameter, value = values.constructor_parts(field, self.names)
            lines.append(f"    {parameter},")
            body.append(f"self.{field.name}: {values.python_type(field, self.names)} = {value}")
            body.append(f'"""{self._field_doc(field)}"""')
        return [*lines, ") -> None:", *indent(body)]

    def _field_doc(self, field: FieldSpec) -> str:
        doc = sentence(field.doc)
        if field.versions == self.scope:
            return doc
        first, last = field.versions
        if last == self.scope.last:
            return f"v{first}+. {doc}"
        return f"v{first}-{last}. {doc}" if first != last else f"v{first}. {doc}"

    def _read(self) -> Lines:
        lines = ["self = cls.__new__(cls)"]
        for cluster in _clusters(self.struct.plain):
            lines += (
                self._read_numbers(cluster) if cluster[0].is_number else self._read_one(cluster[0])
            )
        lines += self._read_tags()
        return [
            "@classmethod",
            f'def read(cls, reader: Reader, version: int) -> "{self.names[self.struct]}":',
            *indent([*lines, "return self"]),
        ]

    def _read_numbers(self, cluster: list[FieldSpec]) -> Lines:
        def lines_for(version: int) -> Lines:
            present = [field for field in cluster if version in field.versions]
            lines = self._read_present(present)
            absent = [field for field in cluster if version not in field.versions]
            return lines + [f"self.{f.name} = {values.default(f, self.names)}" for f in absent]

        return ladder(self.scope, starts_of(*(field.versions for field in cluster)), lines_for)

    def _read_present(self, fields: list[FieldSpec]) -> Lines:
        if not fields:
            return []
        if len(fields) == 1:
            return [f"self.{fields[0].name} = reader.{values.METHODS[fields[0].type]}()"]
        targets = [f"self.{field.name}" for field in fields]
        return _long_line("", targets, f" = reader.fixed({self._layout(fields)})")

    def _read_one(self, field: FieldSpec) -> Lines:
        def lines_for(version: int) -> Lines:
            if version not in field.versions:
                return [f"self.{field.name} = {values.default(field, self.names)}"]
            return values.read_lines(
                field, self._step(field, version), self.flexible_from, self.names
            )

        return ladder(self.scope, self._breaks(field), lines_for)

    def _breaks(self, field: FieldSpec) -> set[int]:
        """Return the versions at which the code of the field changes; an array branches inside."""
        inner = set() if field.is_array else values.breaks(field, self.flexible_from)
        return starts_of(field.versions) | inner

    def _step(self, field: FieldSpec, version: int) -> Range:
        return field.versions if field.is_array else Range(version, version)

    def _read_tags(self) -> Lines:
        if self.never_flexible:
            return self._defaults(self.struct.tagged_fields)
        tagged_fields = self.struct.tagged_fields
        if not tagged_fields:
            lines = ["reader.skip_tagged_fields()"]
        else:
            lines = ["for _ in range(reader.tag_count()):"]
            loop = ["tag = reader.uvarint()", "end = reader.tag_end()"]
            for number, field in enumerate(tagged_fields):
                word = "elif" if number else "if"
                loop.append(f"{word} tag == {field.tag}{self._tag_condition(field)}:")
                loop += indent(
                    values.read_lines(field, field.versions, self.flexible_from, self.names)
                )
            loop += ["else:", "    reader.position = end", "reader.finish_tag(end)"]
            lines += indent(loop)
        if not self.always_flexible:
            lines = [f"if version >= {self.flexible_from}:", *indent(lines)]
        return self._defaults(tagged_fields) + lines

    def _tag_condition(self, field: FieldSpec) -> str:
        start = max(self.flexible_from or 0, self.scope.first)
        condition = (
            f" and version >= {field.versions.first}" if field.versions.first > start else ""
        )
        if field.versions.last < self.scope.last:
            condition += f" and version <= {field.versions.last}"
        return condition

    def _defaults(self, fields: list[FieldSpec]) -> Lines:
        return [f"self.{field.name} = {values.default(field, self.names)}" for field in fields]

    def _write(self) -> Lines:
        lines: Lines = []
        for cluster in _clusters(self.struct.plain):
            lines += (
                self._write_numbers(cluster)
                if cluster[0].is_number
                else self._write_one(cluster[0])
            )
        lines += self._write_tags()
        head = "def write(self, writer: Writer, version: int) -> None:"
        return [head, *indent(lines or ['"""Nothing to write."""'])]

    def _write_numbers(self, cluster: list[FieldSpec]) -> Lines:
        def lines_for(version: int) -> Lines:
            present = [field for field in cluster if version in field.versions]
            lines = self._refusals([f for f in cluster if version not in f.versions])
            if len(present) == 1:
                method = values.METHODS[present[0].type]
                lines.append(f"writer.{method}(self.{present[0].name})")
            elif present:
                sources = [f"self.{field.name}" for field in present]
                lines += _long_line(f"writer.append({self._layout(present)}.pack(", sources, "))")
            return lines

        return ladder(self.scope, starts_of(*(field.versions for field in cluster)), lines_for)

    def _write_one(self, field: FieldSpec) -> Lines:
        def lines_for(version: int) -> Lines:
            if version not in field.versions:
                return self._refusals([field])
            return values.write_lines(
                field, "writer", self._step(field, version), self.flexible_from, self.names
            )

        return ladder(self.scope, self._breaks(field), lines_for)

    def _refusals(self, fields: list[FieldSpec]) -> Lines:
        """Return the code that refuses a value without a place in a version, unless the field is
        ignorable.
        """
        lines: Lines = []
        for field in fields:
            if not field.ignorable:
                lines.append(f"if {values.is_set(field, self.names)}:")
                name = self.names[self.struct]
                lines.append(f'    raise not_carried("{name}", "{field.name}", version)')
        return lines

    def _write_tags(self) -> Lines:
        tagged_fields = self.struct.tagged_fields
        if self.never_flexible:
            return self._refusals(tagged_fields)
        if tagged_fields:
            lines = ["tagged: list[tuple[int, Writer]] = []"]
            for field in tagged_fields:
                lines += self._write_tag(field)
            lines += ["if tagged:", "    writer.tagged_fields(tagged)", "else:"]
            lines.append('    writer.append(b"\\x00")')
        else:
            lines = ['writer.append(b"\\x00")']
        if self.always_flexible:
            return lines
        lines = [f"if version >= {self.flexible_from}:", *indent(lines)]
        refusals = self._refusals(tagged_fields)
        return [*lines, "else:", *indent(refusals)] if refusals else lines

    def _write_tag(self, field: FieldSpec) -> Lines:
        inner = ["value = Writer()"]
        inner += values.write_lines(field, "value", field.versions, self.flexible_from, self.names)
        inner.append(f"tagged.append(({field.tag}, value))")
        is_set = values.is_set(field, self.names)
        lines = [f"if {is_set}{self._tag_condition(field)}:", *indent(inner)]
        if not field.ignorable and self._tag_condition(field):
            lines.append(f"elif {is_set}:")
            lines.append(self._refusals([field])[1])
        return lines

    def _layout(self, fields: list[FieldSpec]) -> str:
        codes = "".join(NUMBER_CODES[field.type] for field in fields)
        self.layouts.add(codes)
        return layout_name(codes)


def layout_name(codes: str) -> str:
    """Return the name of a layout: `"ihq"` → `_IHQ`; unsigned numbers get a U in front, booleans a
    Z.
    """
    letters = {"?": "Z", "H": "UH", "I": "UI"}
    return "_" + "".join(letters.get(code, code.upper()) for code in codes)


def _clusters(fields: list[FieldSpec]) -> list[list[FieldSpec]]:
    """Return the fields in order, with neighbouring numbers together and every other field
    alone.
    """
    clusters: list[list[FieldSpec]] = []
    for field in fields:
        if field.is_number and clusters and clusters[-1][0].is_number:
            clusters[-1].append(field)
        else:
            clusters.append([field])
    return clusters


def _long_line(head: str, items: list[str], tail: str) -> Lines:
    """Return `head items tail`, with one item per line if it is too long for one line."""
    line = head + ", ".join(items) + tail
    if len(line) + 16 <= LINE_LENGTH:
        return [line]
    opening, closing = (head, tail) if head else ("(", ")" + tail)
    return [opening, *indent([f"{item}," for item in items]), closing]
