"""Keys in events."""

from hypothesis import given
from hypothesis import strategies as st

from zq_notebook.engine.events import AssistantDelta, AssistantMessage, Event, LlmRetry, ToolProposed
from zq_notebook.notebook.redaction import EventRedactor
from zq_notebook.text.redact import Redactor

KEY = "sk-test1234567890abcdefXYZ"


def delta(text: str) -> AssistantDelta:
    return AssistantDelta(text=text, req_id="r", task_id="t")


def done(text: str) -> AssistantMessage:
    return AssistantMessage(text=text, reasoning="", tool_calls=[], req_id="r", task_id="t", log_time="")


def texts(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, AssistantDelta))


@given(st.lists(st.integers(0, 60), max_size=6), st.text(alphabet="ab sk-\n", max_size=20))
def test_a_key_cut_anywhere_never_shows_and_nothing_else_is_lost(cuts: list[int], around: str) -> None:
    text = f"{around} {KEY} {around}"
    edges = sorted({0, len(text), *(min(c, len(text)) for c in cuts)})
    redactor = EventRedactor(Redactor([KEY], environ={}))
    shown: list[Event] = []
    for start, end in zip(edges, edges[1:], strict=False):
        shown += redactor.mask([delta(text[start:end])])
    shown += redactor.mask([done(text)])
    assert texts(shown) == f"{around} [redacted] {around}"


def test_deltas_that_follow_each_other_become_one() -> None:
    redactor = EventRedactor(Redactor(environ={}))
    assert [e.text for e in redactor.mask([delta("a"), delta("b"), delta("c ")])] == ["abc "]  # type: ignore[attr-defined]


def test_arguments_are_masked() -> None:
    proposed = ToolProposed(req_id="c", name="run_code", arguments={"code": f"k = '{KEY}'"}, task_id="t")
    (shown,) = EventRedactor(Redactor([KEY], environ={})).mask([proposed])
    assert isinstance(shown, ToolProposed)
    assert shown.arguments == {"code": "k = '[redacted]'"}


def test_what_was_held_back_of_a_broken_reply_is_thrown_away() -> None:
    redactor = EventRedactor(Redactor([KEY], environ={}))
    redactor.mask([delta("so " + KEY[:9])])
    retry = LlmRetry(attempt=1, max=2, reason="", wait_ms=0, iteration=1, req_id="r")
    assert texts(redactor.mask([retry, delta("again "), done("again ")])) == "again "
