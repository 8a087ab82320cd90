"""Errors of the schema registry: a status of HTTP, a code of Confluent's API, a sentence.

A code is the status and two more digits that say which. Clients read the code; people read the
sentence. Source: Confluent's "Schema Registry API Reference".
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Final

from minibroker.control.messages import HttpError, Response

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"

NOT_FOUND: Final = HTTPStatus.NOT_FOUND
UNPROCESSABLE: Final = HTTPStatus.UNPROCESSABLE_ENTITY
FAILED: Final = HTTPStatus.INTERNAL_SERVER_ERROR

NO_LEADER: Final = 50004
"""Code of a change that no registry can make now."""

LEVELS_TEXT: Final = (
    "none, backward, forward, full, backward_transitive, forward_transitive, full_transitive"
)
MODES_TEXT: Final = "READWRITE, READONLY, READONLY_OVERRIDE, IMPORT"


class RegistryError(HttpError):
    """A refusal of the registry, as the client gets it."""

    def __init__(
        self,
        status: int,
        sentence: str,
        headers: tuple[tuple[str, str], ...] = (),
        *,
        code: int | None = None,
    ) -> None:
        """`code`: of Confluent's API; None: the status."""
        super().__init__(status, sentence, headers)
        self.code = int(status if code is None else code)

    def response(self) -> Response:
        """Return it as JSON: `{"error_code": …, "message": …}`."""
        message = {"error_code": self.code, "message": str(self)}
        body = json.dumps(message, separators=(",", ":")).encode()
        return Response(self.status, body, CONTENT_TYPE, self.headers)


class LostLeadershipError(Exception):
    """Another broker leads the topic of schemas by now, and nothing was written."""


def no_subject(subject: str) -> RegistryError:
    """Return the error for a subject without a version that counts."""
    return RegistryError(NOT_FOUND, f"Subject '{subject}' not found.", code=40401)


def no_version(version: int) -> RegistryError:
    """Return the error for a version that a subject does not have."""
    return RegistryError(NOT_FOUND, f"Version {version} not found.", code=40402)


def no_schema(number: int | str | None = None) -> RegistryError:
    """Return the error for a schema that is not in the registry; `number`: its id."""
    name = "Schema" if number is None else f"Schema {number}"
    return RegistryError(NOT_FOUND, f"{name} not found", code=40403)


def is_soft_deleted(subject: str) -> RegistryError:
    """Return the error for a subject that was deleted before."""
    return RegistryError(
        NOT_FOUND,
        f"Subject '{subject}' was soft deleted. Set permanent=true to delete it for good",
        code=40404,
    )


def is_not_soft_deleted(subject: str) -> RegistryError:
    """Return the error for a subject that has to be deleted softly before it can go for good."""
    return RegistryError(
        NOT_FOUND,
        f"Subject '{subject}' was not deleted first before being permanently deleted",
        code=40405,
    )


def is_version_soft_deleted(subject: str, version: int) -> RegistryError:
    """Return the error for a version that was deleted before."""
    return RegistryError(
        NOT_FOUND,
        f"Subject '{subject}' Version {version} was soft deleted."
        " Set permanent=true to delete it for good",
        code=40406,
    )


def is_version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    """Return the error for a version that has to be deleted softly before it can go for good."""
    return RegistryError(
        NOT_FOUND,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently"
        " deleted",
        code=40407,
    )


def has_no_level(subject: str) -> RegistryError:
    """Return the error for a subject without a configuration of its own."""
    return RegistryError(
        NOT_FOUND,
        f"Subject '{subject}' does not have subject-level compatibility configured",
        code=40408,
    )


def has_no_mode(subject: str) -> RegistryError:
    """Return the error for a subject without a mode of its own."""
    return RegistryError(
        NOT_FOUND, f"Subject '{subject}' does not have subject-level mode configured", code=40409
    )


def is_incompatible(subject: str, messages: list[str]) -> RegistryError:
    """Return the error for a schema that does not fit the versions before it."""
    return RegistryError(
        HTTPStatus.CONFLICT,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}",'
        f" details: [{', '.join(messages)}]",
    )


def invalid_schema(reason: str) -> RegistryError:
    """Return the error for a text that is no schema."""
    return RegistryError(UNPROCESSABLE, f"Invalid schema: {reason}", code=42201)


def invalid_version(text: str) -> RegistryError:
    """Return the error for a version that cannot be."""
    return RegistryError(
        UNPROCESSABLE,
        f"The specified version '{text:.100}' is not a valid version id. Allowed values are"
        ' between [1, 2^31-1] and the string "latest"',
        code=42202,
    )


def invalid_level() -> RegistryError:
    """Return the error for a word that is no compatibility level."""
    return RegistryError(
        UNPROCESSABLE, f"Invalid compatibility level. Valid values are {LEVELS_TEXT}", code=42203
    )


def invalid_mode() -> RegistryError:
    """Return the error for a word that is no mode."""
    return RegistryError(UNPROCESSABLE, f"Invalid mode. Valid values are {MODES_TEXT}", code=42204)


def is_not_permitted(sentence: str) -> RegistryError:
    """Return the error for an operation that a mode forbids."""
    return RegistryError(UNPROCESSABLE, sentence, code=42205)


def is_referenced(subject: str, version: int) -> RegistryError:
    """Return the error for the deletion of a schema that others refer to."""
    return RegistryError(
        UNPROCESSABLE,
        "One or more references exist to the schema"
        f" {{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
        code=42206,
    )


def invalid_subject(subject: str) -> RegistryError:
    """Return the error for a name that cannot be a subject."""
    return RegistryError(
        UNPROCESSABLE, f"The specified subject '{subject:.100}' is not valid", code=42208
    )


def is_too_large(sentence: str) -> RegistryError:
    """Return the error for a schema that does not fit into a record."""
    return RegistryError(UNPROCESSABLE, sentence, code=42209)


def backend_failed(sentence: str) -> RegistryError:
    """Return the error for a topic that can be neither read nor written now."""
    return RegistryError(FAILED, sentence, code=50001)


def took_too_long(sentence: str) -> RegistryError:
    """Return the error for work that did not end in time."""
    return RegistryError(FAILED, sentence, code=50002)


def forward_failed(sentence: str) -> RegistryError:
    """Return the error for a registry that writes and cannot be reached."""
    return RegistryError(FAILED, sentence, code=50003)


def has_no_leader(sentence: str) -> RegistryError:
    """Return the error while no registry writes."""
    return RegistryError(FAILED, sentence, code=NO_LEADER)
