"""The server-side assignors and the hash of topics beside Kafka 4.4.0's own classes.

A seeded generator makes groups of all shapes: topics with few and many partitions, members with
equal and with different subscriptions, with an earlier assignment or without one. Kafka answers all
of them in one process; every target must be equal, member by member.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from minibroker.broker.cluster.image import BrokerInfo, MetadataImage, TopicImage
from minibroker.broker.groups.consumer.assignor import AssignorInput, MemberInput, load_assignor
from minibroker.broker.groups.consumer.topics import ImageTopics
from minibroker.kafka.ids import TopicId
from tests.support.images import partition_image
from tests.support.java import KAFKA_44, compiled, run_java

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.groups.consumer.assignor import Assignment

pytestmark = pytest.mark.java

SEED = 848
CASES = 400
HASH_CASES = 30
RACKS = ("a", "b", "rack ü", "𝄞")


class Case(NamedTuple):
    """One group: topics by number, members in the order of a walk."""

    name: str
    is_homogeneous: bool
    topics: list[tuple[bytes, int]]
    members: dict[str, MemberInput]


def numbers_of(case: Case, assignment: Assignment) -> str:
    """Return `0:1,2;2:0`: topic number, partitions."""
    ids = [topic_id for topic_id, _ in case.topics]
    parts = sorted(
        (ids.index(topic_id), ",".join(map(str, partitions)))
        for topic_id, partitions in assignment.items()
    )
    return ";".join(f"{number}:{partitions}" for number, partitions in parts) or "-"


def lines_of(case: Case) -> list[str]:
    ids = [topic_id for topic_id, _ in case.topics]
    lines = [f"topic {i.hex()} t{n} {count}" for n, (i, count) in enumerate(case.topics)]
    for member_id, member in case.members.items():
        subscribed = ",".join(str(ids.index(i)) for i in member.topic_ids) or "-"
        target = numbers_of(case, member.assignment)
        lines.append(f"member {member_id} {member.instance_id or '-'} {subscribed} {target}")
    return [*lines, f"assign {case.name} {str(case.is_homogeneous).lower()}"]


def ours_of(case: Case) -> dict[str, Assignment]:
    owners: dict[bytes, dict[int, str]] = {}
    for member_id, member in case.members.items():
        for topic_id, partitions in member.assignment.items():
            owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))
    assignor_input = AssignorInput(case.members, case.is_homogeneous, dict(case.topics), owners)
    return load_assignor(case.name)(assignor_input)


def case_of(random: Random) -> Case:
    topics = [
        (random.randbytes(16), random.choice((1, 2, 3, 7, 12, 13, 20, 50)))
        for _ in range(random.randint(1, 14))
    ]
    ids = [topic_id for topic_id, _ in topics]
    is_homogeneous = random.random() < 0.5
    everybody = tuple(random.sample(ids, random.randint(0, len(ids))))
    members: dict[str, MemberInput] = {}
    for number in range(random.randint(1, 17)):
        some = tuple(random.sample(ids, random.randint(0, len(ids))))
        instance_id = f"i{random.randint(0, 99)}-{number}" if random.random() < 0.2 else None
        subscribed = everybody if is_homogeneous else some
        members[f"m{random.randint(0, 9)}-{number}"] = MemberInput(instance_id, subscribed, {})
    return Case(random.choice(("uniform", "range")), is_homogeneous, topics, members)


def next_case(case: Case, random: Random) -> Case:
    """Return a case that begins with the targets of the last one: members come, go and change."""
    targets = ours_of(case)
    numbers = {topic_id: number for number, (topic_id, _) in enumerate(case.topics)}
    members = {
        # In the order of the file: Java's tables keep what collides as it was put in.
        member_id: member._replace(
            assignment=dict(sorted(targets.get(member_id, {}).items(), key=lambda e: numbers[e[0]]))
        )
        for member_id, member in case.members.items()
        if random.random() < 0.8
    }
    topics = [(i, count + (random.random() < 0.2)) for i, count in case.topics]
    ids = [topic_id for topic_id, _ in topics]
    if not members or random.random() < 0.5:
        everybody = next(iter(case.members.values())).topic_ids
        members["new"] = MemberInput(None, everybody, {})
    if random.random() < 0.3:
        subscribed = tuple(random.sample(ids, random.randint(1, len(ids))))
        members = {
            member_id: member._replace(topic_ids=subscribed)
            for member_id, member in members.items()
        }
    is_homogeneous = len({frozenset(member.topic_ids) for member in members.values()}) == 1
    return Case(random.choice(("uniform", "range")), is_homogeneous, topics, members)


def test_assignors_give_the_same_targets_as_kafka(tmp_path: Path) -> None:
    random = Random(SEED)
    cases: list[Case] = []
    while len(cases) < CASES:
        case = case_of(random)
        for _ in range(4):
            cases.append(case)
            case = next_case(case, random)
    path = tmp_path / "cases"
    path.write_text("\n".join(line for case in cases for line in lines_of(case)), encoding="utf-8")
    output = run_java(
        KAFKA_44, "Assignors", str(path), classes=compiled("Assignors"), with_errors=False
    )
    answers = output.split(".\n")
    assert len(answers) == len(cases) + 1
    for case, answer in zip(cases, answers, strict=False):
        right = dict(line.split(" ") for line in answer.splitlines() if " " in line)
        ours = {member_id: numbers_of(case, target) for member_id, target in ours_of(case).items()}
        assert ours == right, "\n".join(lines_of(case))


def test_hash_of_topics_is_kafkas(tmp_path: Path) -> None:
    """Long names, racks outside the basic plane, no topic at all."""
    random = Random(SEED)
    lines: list[str] = []
    ours: list[int] = []
    for _ in range(HASH_CASES):
        image = MetadataImage()
        image.brokers = {
            n: BrokerInfo(n, (), rack.replace(" ", "_")) for n, rack in enumerate(RACKS)
        }
        image.brokers[len(RACKS)] = BrokerInfo(len(RACKS), ())
        for number in range(random.randint(0, 5)):
            name = f"t{number}-" + "x" * random.choice((0, 3, 30, 240))
            partitions = [
                partition_image(
                    replicas=random.sample(range(len(RACKS) + 1), random.randint(1, 3)), isr=[]
                )
                for _ in range(random.choice((1, 2, 9, 60)))
            ]
            topic = image.topics[name] = TopicImage(name, TopicId(random.randbytes(16)), partitions)
            racks = [
                ",".join(r for n in partition.replicas if (r := image.brokers[n].rack)) or "-"
                for partition in partitions
            ]
            lines.append(f"topic {topic.topic_id.hex()} {name} {len(partitions)} {';'.join(racks)}")
        lines.append("hash")
        ours.append(ImageTopics(lambda image=image: image, lambda: 0).hash_of(image.topics))
    path = tmp_path / "topics"
    path.write_text("\n".join(lines), encoding="utf-8")
    output = run_java(
        KAFKA_44, "Assignors", str(path), classes=compiled("Assignors"), with_errors=False
    )
    assert ours == [int(line) for line in output.split()]
