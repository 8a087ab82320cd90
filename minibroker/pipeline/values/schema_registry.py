"""A schema registry with Confluent's API, as the driver asks it; tasks ask none.

confluent-kafka's client speaks to it: logins, TLS, repeats and its cache are the library's. The
settings have Java's names or the library's, behind `schema.registry.`:

| setting                                  |                                                    |
|------------------------------------------|----------------------------------------------------|
| `url`                                    | `http://host:8081`, several with commas between    |
| `basic.auth.user.info`                   | `user:password`                                    |
| `bearer.auth.*`                          | a token, or an OAuth server that gives one         |
| `ssl.truststore.*`, `ssl.keystore.*`     | PEM, PKCS12 or JKS, as for a broker                |
| `ssl.ca.location`, `ssl.key.location`, … | PEM files                                          |
"""

from __future__ import annotations

import tempfile
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from minibroker.client.settings import with_stores_as_text
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.cluster import REGISTRY_PREFIX, without_password
from minibroker.pipeline.values.decoding import AVRO, KINDS, PROTOBUF, ValueSchema
from minibroker.protoc import compile_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.pipeline.values.wire_format import SchemaId

URL: Final = "url"
_NOT_THERE: Final = 404
_OF_CREDENTIALS: Final = "basic.auth.credentials.source"
_REFERENCES_MAX: Final = 100
_TEXT_MAX: Final = 4 << 20
"""Characters of a schema with all that it refers to, at most."""
_PROTOC_SECONDS: Final = 60.0
_STORES: Final = ("ssl.truststore.", "ssl.keystore.")
_FILES: Final = {
    "ssl.truststore.certificates": "ssl.ca",
    "ssl.keystore.key": "ssl.key",
    "ssl.keystore.certificate.chain": "ssl.certificate",
}
"""Text of a store → begin of the library's name for a file of it."""


class SchemaRegistry:
    """One registry; used by the driver's thread alone."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Take `settings` without the prefix. Raises PipelineError for wrong ones."""
        client_settings = dict(settings)
        self._url = client_settings.get(URL, "")
        if client_settings.pop(_OF_CREDENTIALS, "USER_INFO") not in ("USER_INFO", "URL"):
            raise PipelineError(f"{REGISTRY_PREFIX}{_OF_CREDENTIALS}: expected USER_INFO or URL")
        self._schemas: dict[int, Any] = {}
        """Id → schema that came with its number, until it is asked for."""
        self._directory = tempfile.TemporaryDirectory(prefix="minibroker-registry-")
        try:
            client_settings |= _pem_files(client_settings, Path(self._directory.name))
            self._client = SchemaRegistryClient(client_settings)
        except Exception as error:
            self._directory.cleanup()
            raise PipelineError(f"the settings of the schema registry are wrong: {error}") from (
                error
            )

    def close(self) -> None:
        """Remove the files with certificates, and end the connections."""
        self._client.__exit__()
        self._directory.cleanup()

    def ids(self, subject: str) -> list[int]:
        """Return the ids of a subject's schemas, the oldest first; empty if it has none.

        Raises PipelineError: the registry does not answer.
        """
        try:
            ids = []
            for number in self._client.get_versions(subject):
                version = self._client.get_version(subject, number)
                self._schemas[version.schema_id] = version.schema
                ids.append(version.schema_id)
            return ids
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_THERE:
                return []
            raise self._no_answer(error) from error
        except Exception as error:
            raise self._no_answer(error) from error

    def schema(self, id_: SchemaId) -> ValueSchema | None:
        """Return the schema with a number or a GUID, None if there is none.

        A schema that nothing can be done with has a reason. Raises PipelineError: the registry
        does not answer.
        """
        try:
            entry = self._request(id_)
            references = self._references(entry)
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_THERE:
                return None
            raise self._no_answer(error) from error
        except ValueError as error:
            return ValueSchema(AVRO, "", reason=str(error))
        except Exception as error:
            raise self._no_answer(error) from error
        kind, text = entry.schema_type or AVRO, entry.schema_str or ""
        if kind not in KINDS:
            return ValueSchema(AVRO, "", reason=f"its type {kind} is none of {', '.join(KINDS)}")
        if kind != PROTOBUF:
            return ValueSchema(kind, text, references)
        try:
            return ValueSchema(kind, descriptors(text, dict(references)))
        except ValueError as error:
            return ValueSchema(AVRO, "", reason=str(error))

    def _request(self, id_: SchemaId) -> Any:
        if isinstance(id_, str):
            return self._client.get_schema_by_guid(id_)
        return self._schemas.pop(id_, None) or self._client.get_schema(id_)

    def _references(self, schema: Any) -> tuple[tuple[str, str], ...]:
        """Return the schemas that one refers to, each after those that it needs itself."""
        texts: dict[str, str] = {}

        def add(references: Iterable[Any], depth: int) -> None:
            for reference in references:
                if depth > _REFERENCES_MAX or len(texts) > _REFERENCES_MAX:
                    raise ValueError("it refers to too many other schemas")
                if reference.name in texts:
                    continue
                target = self._client.get_version(reference.subject, reference.version).schema
                add(target.references or (), depth + 1)
                texts[reference.name] = target.schema_str or ""

        add(schema.references or (), 1)
        if len(schema.schema_str or "") + sum(map(len, texts.values())) > _TEXT_MAX:
            raise ValueError("it is too long")
        return tuple(texts.items())

    def _no_answer(self, error: Exception) -> PipelineError:
        return PipelineError(
            f"the schema registry at {without_password(self._url)} does not answer: {error}; check "
            "--schema-registry, its login and its certificates"
        )


def descriptors(text: str, imported: Mapping[str, str]) -> str:
    """Return a .proto file and those that it imports as a FileDescriptorSet in base64.

    Args:
        imported: path of an import → its text; Google's own are known.

    Raises ProtocError, a ValueError: protoc does not take it.
    """
    files = compile_files("minibroker_value.proto", text, imported, _PROTOC_SECONDS)
    return b64encode(files).decode()


def _pem_files(settings: dict[str, str], directory: Path) -> dict[str, str]:
    """Take Java's stores out of the settings; return the PEM files that hold the same.

    Raises ConfigError: a store cannot be read.
    """
    texts = with_stores_as_text(settings)
    if "ssl.keystore.key" in texts:
        settings.pop("ssl.key.password", None)
    for name in [name for name in settings if name.startswith(_STORES)]:
        del settings[name]
    files = {}
    for java, own in _FILES.items():
        if java in texts:
            path = directory / f"{own}.pem"
            path.touch(mode=0o600)
            path.write_text(texts[java], encoding="ascii")
            files[f"{own}.location"] = str(path)
    if "ssl.keystore.key" in texts and "ssl.key.password" in texts:
        files["ssl.key.password"] = texts["ssl.key.password"]
    return files
