"""`FrameCutter`: frames pass as they come, or are taken whole, whatever the pieces are."""

import random
from struct import pack

import pytest

from minibroker.proxy.frames import FrameCutter, FrameWay


class Side:
    """Takes frames whose first byte is `w` whole; shows all that happens in one list."""

    def __init__(self) -> None:
        self.watches_end = False
        self.events: list[tuple[str, bytes]] = []
        self.needed = 1
        self.cutter = FrameCutter(self)

    def skim(self, data: bytes, at: int) -> int:
        """Know no frame."""
        return at

    def judge(self, size: int, data: bytes, at: int) -> FrameWay:
        """Decide by the first byte, once `needed` of them are here."""
        if not 0 <= size < 1000:
            return FrameWay.RAW
        if len(data) - at < min(size, self.needed):
            return FrameWay.MORE
        return FrameWay.WHOLE if data[at : at + 1] == b"w" else FrameWay.PASS

    def take(self, frame: bytes) -> None:
        """Note it."""
        self.events.append(("take", frame))

    def pass_on(self, data: bytes) -> None:
        """Note it; what passes in a row is one."""
        if self.events and self.events[-1][0] == "pass":
            data = self.events.pop()[1] + data
        self.events.append(("pass", data))

    def end_passing(self) -> None:
        """Note it."""
        self.events.append(("end", b""))


def frame(body: bytes) -> bytes:
    """Return a frame."""
    return pack(">i", len(body)) + body


@pytest.mark.parametrize("seed", range(50))
def test_pieces_of_any_size_give_the_same_frames(seed: int) -> None:
    dice = random.Random(seed)
    bodies = [
        dice.choice((b"w", b"p")) + dice.randbytes(dice.randrange(200))
        for _ in range(dice.randrange(1, 20))
    ]
    bodies.append(b"")
    stream = b"".join(map(frame, bodies))
    side = Side()
    side.needed = dice.choice((1, 8))
    at = 0
    while at < len(stream):
        step = dice.choice((1, 3, 50, 1000))
        side.cutter.feed(stream[at : at + step])
        at += step
    assert b"".join(data for _, data in side.events) == stream
    whole = [data for kind, data in side.events if kind == "take"]
    assert whole == [frame(body) for body in bodies if body.startswith(b"w")]


def test_a_frame_that_passes_is_not_collected() -> None:
    side = Side()
    side.cutter.feed(pack(">i", 900) + b"p" * 100)
    assert side.events == [("pass", pack(">i", 900) + b"p" * 100)]
    assert side.cutter.rest_bytes == 0
    assert side.cutter.is_passing


def test_frames_that_pass_go_on_as_the_same_object() -> None:
    side = Side()
    data = frame(b"p1") + frame(b"p2")
    side.cutter.feed(data)
    assert side.events[0][1] is data


def test_a_held_cutter_keeps_what_comes() -> None:
    side = Side()
    side.cutter.is_held = True
    side.cutter.feed(frame(b"w1"))
    side.cutter.feed(frame(b"p2"))
    assert side.events == []
    side.cutter.resume()
    assert side.events == [("take", frame(b"w1")), ("pass", frame(b"p2"))]


def test_a_side_may_hold_the_cutter_while_it_takes_a_frame() -> None:
    side = Side()
    take = side.take

    def take_and_hold(data: bytes) -> None:
        take(data)
        side.cutter.is_held = True

    side.take = take_and_hold  # type: ignore[method-assign]
    side.cutter.feed(frame(b"p0") + frame(b"w1") + frame(b"p2") + frame(b"w3"))
    assert side.events == [("pass", frame(b"p0")), ("take", frame(b"w1"))]
    side.cutter.resume()
    assert side.events[2:] == [("pass", frame(b"p2")), ("take", frame(b"w3"))]


def test_the_end_of_a_frame_that_passes_comes_behind_its_bytes() -> None:
    side = Side()
    side.watches_end = True
    side.cutter.feed(frame(b"p1") + frame(b"p2"))
    assert side.events == [
        ("pass", frame(b"p1")),
        ("end", b""),
        ("pass", frame(b"p2")),
        ("end", b""),
    ]


def test_a_size_that_is_none_makes_everything_pass() -> None:
    side = Side()
    data = frame(b"w1") + b"\xff\xff\xff\xff" + frame(b"w2")
    side.cutter.feed(data)
    side.cutter.feed(frame(b"w3"))
    assert side.events == [("take", frame(b"w1")), ("pass", data[6:] + frame(b"w3"))]


def test_half_a_frame_goes_on_when_its_sender_has_ended() -> None:
    side = Side()
    side.cutter.feed(frame(b"w12345678")[:8])
    assert side.events == []
    side.cutter.flush()
    assert side.events == [("pass", frame(b"w12345678")[:8])]
