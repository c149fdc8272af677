"""Events out of bytes, wherever the reads end."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.sse_bytes import pieces
from zq_notebook.errors import StreamError
from zq_notebook.providers.sse import HalfCharacters, SseParser, decode_event

STREAM = (
    b': keep-alive\n\ndata: {"a":1}\n\nevent: x\nid: 7\ndata: {"b":"\xc3\xa9"}\n\n'
    b'data:{"c":3}\n\nretry: 5\n\ndata: {"d":\ndata: 4}\n\ndata: [DONE]\n\n'
)
EVENTS = [b'{"a":1}', b'{"b":"\xc3\xa9"}', b'{"c":3}', b'{"d":\n4}', b"[DONE]"]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@given(cuts=st.lists(st.integers(min_value=0, max_value=500), max_size=12))
def test_events_do_not_depend_on_where_reads_end(ending: bytes, cuts: list[int]) -> None:
    parser = SseParser()
    found = [p for read in pieces(STREAM.replace(b"\n", ending), cuts) for p in parser.feed(read)]
    assert found + parser.finish() == EVENTS


def test_every_single_byte_as_a_read() -> None:
    parser = SseParser()
    found = [p for byte in STREAM for p in parser.feed(bytes([byte]))]
    assert found == EVENTS


def test_last_event_without_its_blank_line_is_not_lost() -> None:
    parser = SseParser()
    assert parser.feed(b"data: 1\n\ndata: 2") == [b"1"]
    assert parser.finish() == [b"2"]


def test_error_event_reads_as_an_error() -> None:
    assert SseParser().feed(b'event: error\ndata: {"message":"no"}\n\n') == [
        b'{"type":"error","error":{"message":"no"}}'
    ]


@given(st.text(), st.integers(min_value=0, max_value=1000))
def test_a_character_cut_in_two_halves_comes_out_whole(text: str, cut: int) -> None:
    units = text.encode("utf-16-le")
    at = 2 * (cut % (len(units) // 2 + 1))
    halves = HalfCharacters()
    joined = "".join(halves.join(part.decode("utf-16-le", "surrogatepass")) for part in (units[:at], units[at:]))
    assert joined == text


def test_event_nested_too_deeply_is_a_broken_stream() -> None:
    with pytest.raises(StreamError, match="unreadable"):
        decode_event(msgspec.json.Decoder(dict), b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}")
