"""Short words for what assignors are given: topics by one letter, members as `m1`."""

from __future__ import annotations

from minibroker.broker.groups.consumer.assignor import AssignorInput, MemberInput, load_assignor


def topic_id(name: str) -> bytes:
    """Sixteen bytes of a letter."""
    return name.encode() * 16


def parse(text: str) -> dict[bytes, tuple[int, ...]]:
    """`a:0,1 b:2` → an assignment."""
    entries = (entry.partition(":") for entry in text.split())
    return {topic_id(name): tuple(map(int, numbers.split(","))) for name, _, numbers in entries}


def written(assignment: dict[bytes, tuple[int, ...]]) -> str:
    """The inverse."""
    return " ".join(
        f"{topic[:1].decode()}:{','.join(map(str, numbers))}"
        for topic, numbers in sorted(assignment.items())
    )


def assign(
    name: str,
    topics: dict[str, int],
    members: dict[str, tuple[str, str]],
    instances: dict[str, str] | None = None,
) -> dict[str, str]:
    """`members`: id → (letters of its topics, what it has); the targets in the same words."""
    assigned = {
        member_id: MemberInput(
            (instances or {}).get(member_id), tuple(map(topic_id, letters)), parse(had)
        )
        for member_id, (letters, had) in members.items()
    }
    owners: dict[bytes, dict[int, str]] = {}
    for member_id, member in assigned.items():
        for topic, numbers in member.assignment.items():
            owners.setdefault(topic, {}).update(dict.fromkeys(numbers, member_id))
    is_homogeneous = len({frozenset(letters) for letters, _ in members.values()}) == 1
    counts = {topic_id(letter): count for letter, count in topics.items()}
    targets = load_assignor(name)(AssignorInput(assigned, is_homogeneous, counts, owners))
    return {member_id: written(targets.get(member_id, {})) for member_id in members}
