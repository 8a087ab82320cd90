"""Compatibility of JSON Schemas: each document of the writer's schema fits the reader's.

Each keyword of the reader must follow from the writer's. Names are those of Confluent's registry. A
rule that cannot be decided counts as incompatible; so do patterns that differ.

As in Confluent's registry, and unlike a validator: a property that becomes required may be missing
if it has a default; `format`, `title` and the like count for nothing; a value that fits two
branches of a reader's `oneOf` is no reason.

Content models: a schema is open if it takes any other property, closed if it takes none, and
partially open if `additionalProperties`, `patternProperties` or `unevaluatedProperties` say which.

Source: JSON Schema's drafts; docs of Confluent's Schema Registry, "JSON Schema compatibility".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.registry.compatibility import json_bounds
from minibroker.registry.compatibility.incompatibility import REASONS_MAX, Incompatibility
from minibroker.registry.compatibility.json_views import (
    JsonSum,
    JsonView,
    PatternTrials,
    canonical_value,
    common_types,
    merged,
    most_special,
    rest_of_object,
    view,
)
from minibroker.registry.formats.json_schemas import JsonContent
from minibroker.registry.formats.limits import WorkBudget
from minibroker.registry.formats.parsed_schema import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Reasons = dict[Incompatibility, None]
"""Reasons in order, each once."""

DEPTH_MAX: Final = 90
"""Schemas inside schemas: one takes six frames of Python's stack."""
_PAIRS_OF_A_STEP: Final = 20
_PIECES_MAX: Final = 200
"""Values of an enum that are tried one by one."""
_FEW_VALUES: Final = {"null": (None,), "boolean": (True, False)}
"""Type → all its values."""


def incompatibilities(reader: JsonContent, writer: JsonContent) -> list[Incompatibility]:
    """Return why a document of the writer may not fit. Raises InvalidSchemaError,
    RecursionError.
    """
    return [*JsonWalk(WorkBudget()).reasons([writer], reader, "#")]


class JsonWalk:
    """The reasons of one comparison. Each pair of schemas is looked at once."""

    def __init__(self, budget: WorkBudget) -> None:
        self._budget = budget
        self._trials = PatternTrials(budget)
        self._depth = 0
        self._pairs: dict[tuple[tuple[int, ...], int], Reasons] = {}
        """Identities of the writer's schemas and of the reader's → reasons; none while the pair
        is looked at: a schema that contains itself fits if nothing else speaks against it."""

    def reasons(self, writer: Sequence[JsonContent], reader: JsonContent, path: str) -> Reasons:
        """Return why a value that fits all the writer's schemas may not fit the reader's."""
        self._budget.step()
        key = (tuple(sorted(id(node.schema) for node in writer)), id(reader.schema))
        if isinstance(reader.schema, bool) or any(isinstance(node.schema, bool) for node in writer):
            return self._view_reasons(
                view(writer, self._budget), view([reader], self._budget), path
            )
        if key not in self._pairs:
            self._pairs[key] = {}
            self._pairs[key] = self._view_reasons(
                view(writer, self._budget), view([reader], self._budget), path
            )
        return self._pairs[key]

    def _view_reasons(self, writer: JsonView, reader: JsonView, path: str) -> Reasons:
        """Compare; if that fails, compare each branch of the writer's first sum."""
        self._budget.step(
            1
            + writer.weight
            + reader.weight
            + len(writer.conditions) * len(reader.conditions) // _PAIRS_OF_A_STEP
        )
        self._depth += 1
        try:
            return self._sum_reasons(writer, reader, path)
        finally:
            self._depth -= 1

    def _sum_reasons(self, writer: JsonView, reader: JsonView, path: str) -> Reasons:
        if self._depth > DEPTH_MAX:
            raise InvalidSchemaError(f"they are nested deeper than {DEPTH_MAX} schemas")
        if writer.is_false or not writer.types:
            return {}
        reasons = self._direct_reasons(writer, reader, path)
        if not reasons or not writer.sums:
            return reasons
        part = writer.sums[0]
        branch_reasons: Reasons = {}
        for index, branch in enumerate(part.branches):
            branch_view = writer.with_branch(part, branch, self._budget)
            place = f"{path}/{part.keyword}/{index}"
            _add(branch_reasons, self._view_reasons(branch_view, reader, place))
        return branch_reasons

    def _direct_reasons(self, writer: JsonView, reader: JsonView, path: str) -> Reasons:
        if reader.is_false:
            return _reason("TYPE_CHANGED", path, "the reader takes no value here")
        reasons = _type_reasons(writer, reader, path)
        _add(reasons, _constant_reasons(writer, reader, path))
        types = {most_special(frozenset({name})) for name in writer.types}
        for kind in sorted(types & json_bounds.COUNTS.keys()):
            _add_failures(reasons, json_bounds.count_failures(kind, reader, writer), path)
        if types & {"integer", "number"}:
            _add_failures(reasons, json_bounds.number_failures(reader, writer), path)
        if "string" in types:
            _add_failures(reasons, json_bounds.pattern_failures(reader, writer), path)
        if "object" in types:
            self._compare_objects(writer, reader, path, reasons)
        if "array" in types:
            self._compare_arrays(writer, reader, path, reasons)
        for part in reader.sums:
            if not self._fits_sum(writer, part):
                text = "no branch of the reader takes all values of the writer"
                _add(reasons, _reason("SUM_TYPE_NARROWED", f"{path}/{part.keyword}", text))
        self._compare_logic(writer, reader, path, reasons)
        return reasons

    # ---- sums and logic

    def _fits_sum(self, writer: JsonView, part: JsonSum) -> bool:
        """Return whether one branch takes all values, or some branch all of each type or value."""
        views = [view([branch], self._budget) for branch in part.branches]
        if any(not self._view_reasons(writer, branch, "") for branch in views):
            return True
        pieces = _pieces(writer)
        return len(pieces) > 1 and all(
            any(not self._view_reasons(piece, branch, "") for branch in views) for piece in pieces
        )

    def _compare_logic(
        self, writer: JsonView, reader: JsonView, path: str, reasons: Reasons
    ) -> None:
        for refused in reader.nots:
            if not any(not self.reasons([refused], other, "") for other in writer.nots) and (
                common_types(writer.types, view([refused], self._budget).types)
            ):
                text = "the writer does not promise that values differ from the reader's `not`"
                _add(reasons, _reason("NOT_TYPE_EXTENDED", f"{path}/not", text))
        for test in reader.tests:
            same = any(
                not self.reasons([test.test], other.test, "")
                and not self.reasons([other.test], test.test, "")
                and not self.reasons([other.positive], test.positive, "")
                and not self.reasons([other.negative], test.negative, "")
                for other in writer.tests
            )
            outcomes = (test.positive, test.negative)
            if not same and any(
                self._view_reasons(writer, view([outcome], self._budget), "")
                for outcome in outcomes
            ):
                text = "the writer does not promise the outcome of the reader's `if`"
                _add(reasons, _reason("COMBINED_TYPE_CHANGED", f"{path}/if", text))

    # ---- objects

    def _compare_objects(
        self, writer: JsonView, reader: JsonView, path: str, reasons: Reasons
    ) -> None:
        if _has_no_values_of(writer, dict):
            return
        for name in {**writer.names, **reader.names}:
            if len(reasons) < REASONS_MAX:
                self._compare_property(writer, reader, name, f"{path}/properties/{name}", reasons)
        self._compare_required(writer, reader, path, reasons)
        for node in reader.conditions:
            self._compare_other_properties(writer, node, path, reasons)
            self._compare_property_names(writer, node, path, reasons)
            self._compare_dependencies(writer, node, path, reasons)

    def _compare_property(
        self, writer: JsonView, reader: JsonView, name: str, path: str, reasons: Reasons
    ) -> None:
        self._budget.step(1 + len(writer.conditions) + len(reader.conditions))
        writer_schemas = writer.property_schemas(name, self._trials, may_match=False)
        for schema in reader.property_schemas(name, self._trials, may_match=True):
            part_reasons = self.reasons(writer_schemas, schema, path)
            if not part_reasons:
                continue
            if name in writer.names and name in reader.names:
                _add(reasons, part_reasons)
            elif name in writer.names:
                kind = (
                    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"
                    if schema.schema is False
                    else "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
                )
                text = f"the writer has the property {name}, which the reader does not take"
                _add(reasons, _reason(kind, path, text))
            elif writer_schemas:
                kind = "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
                text = f"the writer takes other values for the property {name}"
                _add(reasons, part_reasons | _reason(kind, path, text))
            elif name not in reader.required:
                kind = "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
                text = f"the writer is open and may hold any value in the property {name}"
                _add(reasons, _reason(kind, path, text))
            else:
                kind = "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
                if self._has_default(reader, name):
                    kind = "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"
                text = f"the writer is open and may hold any value in the property {name}"
                _add(reasons, _reason(kind, path, text))

    def _compare_required(
        self, writer: JsonView, reader: JsonView, path: str, reasons: Reasons
    ) -> None:
        for name in sorted(reader.required - writer.required):
            self._budget.step(1 + len(writer.conditions) + len(reader.conditions))
            if self._has_default(reader, name):
                continue
            text = f"the reader requires the property {name}, which the writer may leave out"
            if name in writer.names:
                place = f"{path}/required/{name}"
                _add(reasons, _reason("REQUIRED_ATTRIBUTE_ADDED", place, text))
                continue
            is_open = not writer.property_schemas(name, self._trials, may_match=False)
            model = "OPEN" if is_open else "UNOPEN"
            kind = f"REQUIRED_PROPERTY_ADDED_TO_{model}_CONTENT_MODEL"
            _add(reasons, _reason(kind, f"{path}/properties/{name}", text))

    def _has_default(self, reader: JsonView, name: str) -> bool:
        return any(
            "default" in node.schema
            for schema in reader.property_schemas(name, self._trials, may_match=False)
            for node in view([schema], self._budget).conditions
        )

    def _compare_other_properties(
        self, writer: JsonView, reader: JsonContent, path: str, reasons: Reasons
    ) -> None:
        """Compare patterns of names, and properties that nothing mentions."""
        rest = writer.other_properties()
        patterns = _patterns(writer.conditions)
        reader_patterns = _patterns([reader])
        for pattern, schema in reader_patterns.items():
            place = f"{path}/patternProperties/{pattern}"
            if pattern in patterns:
                _add(reasons, self.reasons(writer.pattern_schemas(pattern), schema, place))
                continue
            for schemas in (rest, *map(writer.pattern_schemas, patterns)):
                _add(reasons, self.reasons(schemas, schema, place))
        reader_rest = rest_of_object(reader)
        if reader_rest is None:
            return
        keyword = (
            "additionalProperties"
            if "additionalProperties" in reader.schema
            else "unevaluatedProperties"
        )
        name = "ADDITIONAL" if keyword == "additionalProperties" else "UNEVALUATED"
        self._budget.step(len(reader_patterns) * len(patterns))
        others = [pattern for pattern in patterns if pattern not in reader_patterns]
        for schemas in (rest, *map(writer.pattern_schemas, others)):
            part_reasons = self.reasons(schemas, reader_rest, f"{path}/{keyword}")
            if part_reasons:
                kind = "REMOVED" if reader_rest.schema is False else "NARROWED"
                text = "the reader takes fewer other properties than the writer"
                _add(reasons, _reason(f"{name}_PROPERTIES_{kind}", f"{path}/{keyword}", text))

    def _compare_property_names(
        self, writer: JsonView, reader: JsonContent, path: str, reasons: Reasons
    ) -> None:
        if "propertyNames" not in reader.schema:
            return
        rule = reader.part(reader.schema["propertyNames"])
        place = f"{path}/propertyNames"
        own = [
            node.part(node.schema["propertyNames"])
            for node in writer.conditions
            if "propertyNames" in node.schema
        ]
        own.append(reader.part({"type": "string"}))
        is_closed = any(node.schema is False for node in writer.other_properties())
        if is_closed and not _patterns(writer.conditions):
            own.append(reader.part({"enum": [*writer.names]}))
        writer_view = view(own, self._budget)
        _add(reasons, self._view_reasons(writer_view, view([rule], self._budget), place))

    def _compare_dependencies(
        self, writer: JsonView, reader: JsonContent, path: str, reasons: Reasons
    ) -> None:
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            for name, needs in reader.schema.get(keyword, {}).items():
                self._budget.step(1 + len(writer.conditions))
                place = f"{path}/{keyword}/{name}"
                if any(
                    node.schema is False
                    for node in writer.property_schemas(name, self._trials, may_match=False)
                ):
                    continue
                if isinstance(needs, list):
                    missing = {*needs} - writer.required - _needs(writer, name)
                    if missing:
                        text = f"the writer does not promise {', '.join(sorted(missing)):.200}"
                        kind = "EXTENDED" if _needs(writer, name) else "ADDED"
                        _add(reasons, _reason(f"DEPENDENCY_ARRAY_{kind}", place, text))
                    continue
                schemas = _dependent_schemas(writer, name)
                whole = merged(writer, view(schemas, self._budget))
                part_reasons = self._view_reasons(
                    whole, view([reader.part(needs)], self._budget), place
                )
                if part_reasons and not schemas:
                    text = f"only the reader has a schema for objects with the property {name}"
                    part_reasons = _reason("DEPENDENCY_SCHEMA_ADDED", place, text)
                _add(reasons, part_reasons)

    # ---- arrays

    def _compare_arrays(
        self, writer: JsonView, reader: JsonView, path: str, reasons: Reasons
    ) -> None:
        if _has_no_values_of(writer, list):
            return
        longest = min(writer.values("maxItems"), default=None)
        length = max(writer.prefix_length(), reader.prefix_length())
        for index in range(length if longest is None else min(length, int(longest))):
            self._compare_item(writer, reader, index, f"{path}/items/{index}", reasons)
        if longest is None or longest > length:
            self._compare_item(writer, reader, None, f"{path}/items", reasons)
        if any(reader.values("uniqueItems")) and not any(writer.values("uniqueItems")):
            text = "the writer's items may be equal"
            _add(reasons, _reason("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems", text))
        for node in reader.conditions:
            if "contains" in node.schema:
                self._compare_contains(writer, node, path, reasons)

    def _compare_item(
        self, writer: JsonView, reader: JsonView, index: int | None, path: str, reasons: Reasons
    ) -> None:
        self._budget.step(1 + len(writer.conditions) + len(reader.conditions))
        writer_schemas = writer.item_schemas(index)
        is_own_prefix = index is not None and index < writer.prefix_length()
        for schema in reader.item_schemas(index):
            part_reasons = self.reasons(writer_schemas, schema, path)
            if not part_reasons:
                continue
            if schema.schema is False and is_own_prefix:
                text = "the writer has an item that the reader does not take"
                part_reasons = _reason("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path, text)
            elif schema.schema is False:
                text = "the reader takes no other items than those with a place"
                part_reasons = _reason("ADDITIONAL_ITEMS_REMOVED", path, text)
            elif not writer_schemas and index is not None:
                text = "the writer is open and may hold any value in this item"
                part_reasons = _reason("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", path, text)
            _add(reasons, part_reasons)

    def _compare_contains(
        self, writer: JsonView, reader: JsonContent, path: str, reasons: Reasons
    ) -> None:
        rule = reader.part(reader.schema["contains"])
        least, most = reader.schema.get("minContains", 1), reader.schema.get("maxContains")
        for node in writer.conditions:
            if "contains" not in node.schema:
                continue
            other = node.part(node.schema["contains"])
            promises_least = node.schema.get("minContains", 1) >= least and not self.reasons(
                [other], rule, ""
            )
            promises_most = most is None or (
                node.schema.get("maxContains", most + 1) <= most
                and not self.reasons([rule], other, "")
            )
            if (promises_least or least == 0) and promises_most:
                return
        if least == 0 and most is None:
            return
        kind = "MIN_CONTAINS_ADDED" if most is None else "MAX_CONTAINS_ADDED"
        text = "the writer does not promise so many items of the reader's `contains`"
        _add(reasons, _reason(kind, f"{path}/contains", text))


def _type_reasons(writer: JsonView, reader: JsonView, path: str) -> Reasons:
    reasons: Reasons = {}
    for keyword in reader.values("type"):
        allowed = frozenset({keyword} if isinstance(keyword, str) else {*keyword})
        refused = {
            name
            for name in writer.types
            if name not in allowed and not (name == "integer" and "number" in allowed)
        }
        if refused:
            common = common_types(writer.types, allowed)
            kind = "TYPE_NARROWED" if common else "TYPE_CHANGED"
            text = (
                f"the reader takes {', '.join(sorted(allowed))} and the writer has"
                f" {', '.join(sorted(refused))}"
            )
            _add(reasons, _reason(kind, path, text))
    return reasons


def _constant_reasons(writer: JsonView, reader: JsonView, path: str) -> Reasons:
    if reader.constants is None:
        return {}
    own = writer.constants
    if own is None and writer.types <= _FEW_VALUES.keys():
        values = [value for name in writer.types for value in _FEW_VALUES[name]]
        own = {canonical_value(value): value for value in values}
    if own is not None and own.keys() <= reader.constants.keys():
        return {}
    kind, text = "ENUM_ARRAY_CHANGED", "the reader's enum lacks values of the writer"
    if own is not None and own.keys() >= reader.constants.keys():
        kind = "ENUM_ARRAY_NARROWED"
    return _reason(kind, f"{path}/enum", text)


def _has_no_values_of(writer: JsonView, kind: type) -> bool:
    """Return whether an enum allows no objects, or no arrays."""
    return writer.constants is not None and not any(
        isinstance(value, kind) for value in writer.constants.values()
    )


def _pieces(writer: JsonView) -> list[JsonView]:
    """Return views that together have all values of the writer: by value, or by type."""
    if not writer.conditions:
        return []
    node = writer.conditions[0]
    rules: Iterable[dict[str, Any]]
    if writer.constants is not None and len(writer.constants) > _PIECES_MAX:
        return []
    if writer.constants is not None:
        rules = [{"const": value} for value in writer.constants.values()]
    elif writer.types <= _FEW_VALUES.keys():
        rules = [{"const": value} for name in writer.types for value in _FEW_VALUES[name]]
    else:
        rules = [{"type": name} for name in sorted(writer.types)]
    return [merged(writer, JsonView((node.part(rule),))) for rule in rules]


def _patterns(nodes: Iterable[JsonContent]) -> dict[str, JsonContent]:
    """Return the patterns of names, in their order; of two equal ones the last schema."""
    return {
        pattern: node.part(schema)
        for node in nodes
        for pattern, schema in node.schema.get("patternProperties", {}).items()
    }


def _needs(writer: JsonView, name: str) -> set[str]:
    """Return the properties that an object with the property `name` must have too."""
    return {
        other
        for keyword in ("dependencies", "dependentRequired")
        for part in writer.values(keyword)
        if isinstance(part.get(name), list)
        for other in part[name]
    }


def _dependent_schemas(writer: JsonView, name: str) -> list[JsonContent]:
    return [
        node.part(node.schema[keyword][name])
        for node in writer.conditions
        for keyword in ("dependencies", "dependentSchemas")
        if isinstance(node.schema.get(keyword, {}).get(name), dict | bool)
    ]


def _reason(kind: str, path: str, description: str) -> Reasons:
    return {Incompatibility(kind, path, description): None}


def _add(reasons: Reasons, others: Reasons) -> None:
    if len(reasons) < REASONS_MAX:
        reasons.update(others)


def _add_failures(reasons: Reasons, failures: Iterable[json_bounds.Failure], path: str) -> None:
    for failure in failures:
        _add(reasons, _reason(failure.kind, f"{path}/{failure.keyword}", failure.description))
