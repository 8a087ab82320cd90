"""S3 and stores with its API: one set of settings, under the names of every library.

    AWS_… of the environment ─┐
    fs.s3a.… of Spark ────────┼─► ObjectStore ─► PyIceberg, deltalake, obstore, PyArrow, Spark
    --storage ────────────────┘

The later one of these three wins. A setting that none of them has is left to each library, which
then asks for a role of the machine, for instance. `_NAMES` is the table of all names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

SCHEMES: Final = ("s3://", "s3a://")
HADOOP: Final = "fs.s3a."
SPARK: Final = f"spark.hadoop.{HADOOP}"
_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_ANONYMOUS: Final = "AnonymousAWSCredentialsProvider"
_DEFAULT_REGION: Final = "us-east-1"
"""Region of a store that is not Amazon's: a signature has one, and such stores take this one."""
_TRUE: Final = ("true", "1", "yes")


class ObjectStore(NamedTuple):
    """The settings of one store; an empty text is not set."""

    endpoint: str = ""
    """URL of the store; empty: Amazon's of the region."""
    region: str = ""
    access_key: str = ""
    secret_key: str = ""
    session_token: str = ""
    path_style: str = ""
    """true: the bucket is in the path of a request; false: in its host."""
    anonymous: str = ""
    """true: requests are not signed."""

    @property
    def signing_region(self) -> str:
        """Return the region of a signature, empty for the library's own choice."""
        return self.region or (_DEFAULT_REGION if self.endpoint else "")

    @property
    def is_path_style(self) -> bool:
        """Return whether the bucket is in the path; a store with an address of its own wants it."""
        return self.path_style == "true" or (not self.path_style and bool(self.endpoint))

    @property
    def is_plain(self) -> bool:
        """Return whether requests go without TLS."""
        return self.endpoint.startswith("http://")

    def for_iceberg(self) -> dict[str, str]:
        """Return the properties of PyIceberg's FileIO."""
        settings = self._texts("iceberg") | _set("s3.region", self.signing_region)
        if self.endpoint or self.path_style:
            settings["s3.force-virtual-addressing"] = str(not self.is_path_style).lower()
        if self.anonymous == "true":
            settings["s3.anonymous"] = "true"
        return settings

    def for_delta(self) -> dict[str, str]:
        """Return the storage options of deltalake."""
        settings = self._texts("delta") | _set("AWS_REGION", self.signing_region)
        if self.endpoint or self.path_style:
            settings["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = str(not self.is_path_style).lower()
        if self.is_plain:
            settings["AWS_ALLOW_HTTP"] = "true"
        if self.anonymous == "true":
            settings["AWS_SKIP_SIGNATURE"] = "true"
        return settings

    def for_obstore(self) -> dict[str, Any]:
        """Return the arguments of obstore's S3Store."""
        settings: dict[str, Any] = self._texts("obstore") | _set("region", self.signing_region)
        if self.endpoint or self.path_style:
            settings["virtual_hosted_style_request"] = not self.is_path_style
        if self.anonymous == "true":
            settings["skip_signature"] = True
        if self.is_plain:
            settings["client_options"] = {"allow_http": True}
        return settings

    def for_arrow(self) -> dict[str, Any]:
        """Return the arguments of PyArrow's S3FileSystem."""
        settings: dict[str, Any] = self._texts("arrow") | _set("region", self.signing_region)
        scheme, mark, host = self.endpoint.partition("://")
        if mark:
            settings |= {"scheme": scheme, "endpoint_override": host.rstrip("/")}
        if self.endpoint or self.path_style:
            settings["force_virtual_addressing"] = not self.is_path_style
        if self.anonymous == "true":
            settings["anonymous"] = True
        return settings

    def for_spark(self) -> dict[str, str]:
        """Return the settings of a session whose Hadoop has S3A, for both schemes."""
        settings = {"spark.hadoop.fs.s3.impl": _S3A, **self._texts("hadoop", SPARK)}
        settings |= _set(f"{SPARK}endpoint.region", self.signing_region)
        if self.endpoint:
            settings[f"{SPARK}path.style.access"] = str(self.is_path_style).lower()
            settings[f"{SPARK}connection.ssl.enabled"] = str(not self.is_plain).lower()
        if self.anonymous == "true":
            settings[f"{SPARK}aws.credentials.provider"] = f"org.apache.hadoop.fs.s3a.{_ANONYMOUS}"
        return settings

    def _texts(self, library: str, prefix: str = "") -> dict[str, str]:
        """Return the settings that are the same text everywhere, by the names of a library."""
        settings = {}
        for name in _NAMES:
            value = getattr(self, name.field)
            if value and (setting := getattr(name, library)):
                settings[f"{prefix}{setting}"] = value
        return settings


class _Name(NamedTuple):
    """The names of one setting."""

    field: str
    hadoop: str
    """Behind fs.s3a."""
    iceberg: str
    delta: str
    obstore: str
    arrow: str
    """Empty: the value is another one there."""
    environment: tuple[str, ...]


_NAMES: Final = (
    _Name(
        "endpoint",
        "endpoint",
        "s3.endpoint",
        "AWS_ENDPOINT_URL",
        "endpoint",
        "",
        ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"),
    ),
    _Name(
        "region",
        "endpoint.region",
        "s3.region",
        "AWS_REGION",
        "region",
        "region",
        ("AWS_DEFAULT_REGION", "AWS_REGION"),
    ),
    _Name(
        "access_key",
        "access.key",
        "s3.access-key-id",
        "AWS_ACCESS_KEY_ID",
        "access_key_id",
        "access_key",
        ("AWS_ACCESS_KEY_ID",),
    ),
    _Name(
        "secret_key",
        "secret.key",
        "s3.secret-access-key",
        "AWS_SECRET_ACCESS_KEY",
        "secret_access_key",
        "secret_key",
        ("AWS_SECRET_ACCESS_KEY",),
    ),
    _Name(
        "session_token",
        "session.token",
        "s3.session-token",
        "AWS_SESSION_TOKEN",
        "session_token",
        "session_token",
        ("AWS_SESSION_TOKEN",),
    ),
)
"""Settings that have the same value everywhere. The others are in the methods of `ObjectStore`."""

_PATH_STYLE: Final = f"{HADOOP}path.style.access"
_TLS: Final = f"{HADOOP}connection.ssl.enabled"
_PROVIDER: Final = f"{HADOOP}aws.credentials.provider"
_VIRTUAL: Final = ("s3.force-virtual-addressing", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST")
_UNSIGNED: Final = ("s3.anonymous", "AWS_SKIP_SIGNATURE")
_IMPLIED: Final = ("AWS_ALLOW_HTTP",)
"""Names that say nothing new: the URL of the endpoint says it."""


def known_names() -> list[str]:
    """Return every name that `--storage` takes."""
    names = {part for name in _NAMES for part in (HADOOP + name.hadoop, name.iceberg, name.delta)}
    names |= {part for name in _NAMES for part in name.environment}
    return sorted({*names, _PATH_STYLE, _TLS, _PROVIDER, *_VIRTUAL, *_UNSIGNED, *_IMPLIED})


def is_object_store(path: str) -> bool:
    """Return whether a path is in S3, or in a store with its API."""
    return path.startswith(SCHEMES)


def bucket_and_key(path: str) -> tuple[str, str]:
    """Return the bucket of a URL and the rest without slashes around it."""
    bucket, _, key = path.partition("://")[2].partition("/")
    return bucket, key.strip("/")


def store_of(
    path: str,
    environment: Mapping[str, str],
    hadoop: Mapping[str, str],
    storage: Mapping[str, str],
) -> ObjectStore:
    """Return the settings for a path.

    Args:
        path: URL of a store.
        environment: variables of this process.
        hadoop: settings with `fs.s3a.` in front; those of the bucket win, as in Hadoop.
        storage: of `--storage`.
    """
    bucket = f"{HADOOP}bucket.{bucket_and_key(path)[0]}."
    of_bucket = {
        HADOOP + name.removeprefix(bucket): text
        for name, text in hadoop.items()
        if name.startswith(bucket)
    }
    store = _with_settings(ObjectStore(), environment)
    store = _with_settings(store, {**hadoop, **of_bucket}, defaults=True)
    return _with_settings(store, storage)


def store_of_session(
    path: str, spark: SparkSession, environment: Mapping[str, str], storage: Mapping[str, str]
) -> ObjectStore:
    """Return the settings for a path, those of a session among them."""
    jsc: Any = spark._jsc
    hadoop = jsc.hadoopConfiguration().getPropsWithPrefix(HADOOP)
    return store_of(
        path, environment, {f"{HADOOP}{name}": hadoop[name] for name in hadoop}, storage
    )


def _with_settings(
    store: ObjectStore, settings: Mapping[str, str], *, defaults: bool = False
) -> ObjectStore:
    """Return a store with these settings in place of its own.

    Args:
        store: with what is known so far.
        settings: under any names of `known_names`, others are left alone.
        defaults: they are Hadoop's, which has a value for each: its defaults say nothing.
    """
    fields: dict[str, str] = {}
    for name in _NAMES:
        for alias in (*name.environment, name.delta, name.iceberg, HADOOP + name.hadoop):
            if settings.get(alias):
                fields[name.field] = settings[alias].strip()
    if settings.get(_PATH_STYLE) and not (defaults and not _is_true(settings[_PATH_STYLE])):
        fields["path_style"] = str(_is_true(settings[_PATH_STYLE])).lower()
    for alias in _VIRTUAL:
        if alias in settings:
            fields["path_style"] = str(not _is_true(settings[alias])).lower()
    if any(_is_true(settings.get(alias, "")) for alias in _UNSIGNED):
        fields["anonymous"] = "true"
    if settings.get(_PROVIDER, "").strip().endswith(_ANONYMOUS):
        fields["anonymous"] = "true"
    if (endpoint := fields.get("endpoint")) and "://" not in endpoint:
        is_plain = settings.get(_TLS, "true").strip().lower() == "false"
        fields["endpoint"] = f"{'http' if is_plain else 'https'}://{endpoint}"
    return store._replace(**fields)


def _set(name: str, value: str) -> dict[str, str]:
    return {name: value} if value else {}


def _is_true(text: str) -> bool:
    return text.strip().lower() in _TRUE


def check_hadoop(spark: SparkSession, checkpoint: str) -> None:
    """Raise PipelineError if Spark cannot keep its checkpoint in a store."""
    if not is_object_store(checkpoint):
        return
    jvm: Any = spark._jvm
    version = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    try:
        jvm.java.lang.Class.forName(
            _S3A, False, jvm.java.lang.Thread.currentThread().getContextClassLoader()
        )
    except Exception as error:
        raise PipelineError(
            f"Spark's checkpoint is at {checkpoint}, and this Spark has no S3A: give --packages "
            f"org.apache.hadoop:hadoop-aws:{version}, or --checkpoint DIR on this machine or on "
            "one that is always there"
        ) from error
