"""AlterReplicaLogDirs on a broker with one log directory: the refusals and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.compat.scenarios import scenario

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue


def to(path: str, *topics: tuple[str, list[int]]) -> dict[str, Any]:
    """Return one directory of a request."""
    entries = [{"name": name, "partitions": partitions} for name, partitions in topics]
    return {"path": path, "topics": entries}


@scenario("alter_replica_log_dirs")
def alter_replica_log_dirs_of_known_topics(talk: Dialogue) -> None:
    name = talk.make_topic("moved", partitions=2)
    directory = talk.quietly("describe_log_dirs", 1, topics=[])["results"][0]["log_dir"]
    talk.ask("where it is", dirs=[to(directory, (name, [0, 1]))])
    talk.ask("nowhere", dirs=[to("/nowhere", (name, [0]))])
    talk.ask("with a slash", dirs=[to(directory + "/", (name, [0]))])
    talk.ask("empty path", dirs=[to("", (name, [0]))])
    talk.ask("unknown partition", dirs=[to(directory, (name, [7]))])
    talk.ask("negative partition", dirs=[to(directory, (name, [-1]))])
    talk.ask("twice", dirs=[to("/nowhere", (name, [0])), to(directory, (name, [0]))])
    talk.ask("no partitions", dirs=[to(directory, (name, []))])
    talk.ask("nothing", dirs=[])


@scenario("alter_replica_log_dirs")
def alter_replica_log_dirs_of_unknown_topics(talk: Dialogue) -> None:
    directory = talk.quietly("describe_log_dirs", 1, topics=[])["results"][0]["log_dir"]
    talk.ask("unknown", dirs=[to(directory, (talk.topic("unknown"), [0]))])
    talk.ask("unknown, nowhere", dirs=[to("/nowhere", (talk.topic("unknown"), [0]))])
    talk.ask("just short enough", dirs=[to(directory, ("s" * 213, [0]))])
    talk.ask("too long", dirs=[to(directory, ("l" * 214, [0]))])
    talk.ask("too long, nowhere", dirs=[to("/nowhere", ("l" * 214, [0]))])
