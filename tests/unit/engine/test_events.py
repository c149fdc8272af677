"""The 21 event types: their fields on the wire are those of Manual §9.2 and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from zq_notebook.engine import events as ev
from zq_notebook.engine.events import EVENT_CLASSES, EventType
from zq_notebook.toolio import ToolOutput

# type: (all attributes, wire fields that must be there, wire fields that may be left out)
SHAPES: dict[str, tuple[dict[str, Any], str, str]] = {
    "turn_start": (
        {"task_id": "t", "input": "i", "attachment_count": 1, "attachments": [{"name": "a"}]},
        "taskId input",
        "attachmentCount attachments",
    ),
    "assistant_delta": ({"text": "x", "req_id": "r", "task_id": "t"}, "text reqId taskId", ""),
    "reasoning_delta": ({"text": "x", "req_id": "r", "task_id": "t"}, "text reqId taskId", ""),
    "assistant_message": (
        {
            "text": "x",
            "reasoning": "",
            "tool_calls": ["grep"],
            "usage": {"prompt_tokens": 1},
            "req_id": "r",
            "task_id": "t",
            "log_time": "z",
        },
        "text reasoning tool_calls reqId taskId logTime",
        "usage",
    ),
    "tool_proposed": (
        {"req_id": "c", "name": "n", "arguments": {}, "task_id": "t"},
        "reqId name arguments taskId",
        "",
    ),
    "permission_required": (
        {"task_id": "t", "req_id": "c", "name": "n", "arguments": {}, "reason": "r", "category": "c"},
        "taskId reqId name arguments reason category",
        "",
    ),
    "tool_started": (
        {"task_id": "t", "req_id": "c", "name": "n", "start_time": "z"},
        "taskId reqId name",
        "startTime",
    ),
    "tool_finished": (
        {
            "task_id": "t",
            "req_id": "c",
            "name": "n",
            "status": "ok",
            "reason": "r",
            "duration": 0,
            "result_preview": "",
            "output": ToolOutput(text="not on the wire"),
        },
        "taskId reqId name status",
        "reason duration result_preview",
    ),
    "iteration_end": ({"iteration": 1, "task_id": "t"}, "iteration taskId", ""),
    "turn_end": (
        {"status": "completed", "iterations": 0, "produced_files": [], "task_id": "t"},
        "status iterations produced_files taskId",
        "",
    ),
    "error": (
        {
            "error": "e",
            "error_type": "E",
            "retriable": False,
            "iteration": 0,
            "req_id": "r",
            "log_time": "z",
            "task_id": "t",
            "stack": "s",
        },
        "error error_type retriable iteration reqId logTime taskId",
        "stack",
    ),
    "interrupted": ({"iterations": 0, "req_id": "r", "task_id": "t"}, "iterations reqId taskId", ""),
    "compacting": (
        {
            "task_id": "t",
            "trigger": "threshold",
            "tokens": 0,
            "estimated": False,
            "context_window": 1,
            "threshold_pct": 0.8,
            "threshold_tokens": 1,
            "outbound_messages": 1,
        },
        "taskId trigger tokens estimated contextWindow thresholdPct thresholdTokens outboundMessages",
        "",
    ),
    "compacted": (
        {
            "req_id": "r",
            "task_id": "t",
            "method": "summarized",
            "messages_before": 9,
            "messages_after": 3,
            "boundary_index": 0,
            "model": "m",
            "summary_preview": "s",
            "kept_user_messages": 0,
            "dropped_user_messages": 0,
        },
        "reqId taskId method messagesBefore messagesAfter",
        "boundaryIndex model summaryPreview keptUserMessages droppedUserMessages",
    ),
    "queue_steering": ({"text": "x", "task_id": "t", "attachments": []}, "text taskId", "attachments"),
    "llm_request": (
        {
            "req_id": "r",
            "task_id": "t",
            "log_time": "z",
            "model": "m",
            "msg_count": 1,
            "tool_count": 0,
            "compact": True,
        },
        "reqId taskId logTime model msgCount toolCount",
        "compact",
    ),
    "ask_user_question": (
        {"task_id": "t", "question": "q", "options": ["a"], "allow_text": False, "multi": False},
        "taskId question options allowText multi",
        "",
    ),
    "plan_proposed": ({"plan": "p", "task_id": "t"}, "plan", ""),
    "directory_requested": (
        {"reason": "r", "path": "/p", "writable": False, "task_id": "t"},
        "reason path writable",
        "",
    ),
    "llm_retry": (
        {"attempt": 1, "max": 2, "reason": "r", "wait_ms": 0, "iteration": 1, "req_id": "r"},
        "attempt max reason waitMs iteration reqId",
        "",
    ),
    "session_named": ({"name": "n", "source": "auto"}, "name source", ""),
}


def test_every_event_type_has_its_class_and_its_case_here() -> None:
    assert set(EVENT_CLASSES) == set(SHAPES) == {str(member) for member in EventType}
    assert len(SHAPES) == 21


@pytest.mark.parametrize("name", SHAPES)
def test_wire_dictionary_has_the_fields_of_the_manual_and_no_others(name: str) -> None:
    attributes, required, optional = SHAPES[name]
    event = EVENT_CLASSES[name](**attributes)
    assert event.type is EventType(name)
    assert set(event.data) == {*required.split(), *optional.split()}
    assert json.loads(event.to_json()) == event.data


@pytest.mark.parametrize("name", SHAPES)
def test_optional_fields_without_a_value_are_left_out_and_others_cannot_be(name: str) -> None:
    attributes, required, _ = SHAPES[name]
    cls = EVENT_CLASSES[name]
    by_wire = {cls.renamed.get(attribute, attribute): attribute for attribute in attributes}
    needed = {by_wire[field]: attributes[by_wire[field]] for field in required.split()}
    assert set(cls(**needed).data) == set(required.split())
    for attribute in needed.keys() - {"task_id"}:  # an event made by hand belongs to no task
        with pytest.raises(TypeError, match=attribute):
            cls(**{key: value for key, value in needed.items() if key != attribute})


def test_falsy_values_are_values() -> None:
    event = ev.ToolFinished(task_id="t", req_id="c", name="n", status="ok", duration=0, result_preview="")
    assert event.data["duration"] == 0
    assert event.data["result_preview"] == ""


def test_events_cannot_be_changed() -> None:
    event = ev.IterationEnd(iteration=1, task_id="t")
    with pytest.raises(AttributeError):
        event.iteration = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("caf\u00e9 \U0001f600", "caf\u00e9 \U0001f600"),
        ("cut \ud83d", "cut \ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\udc00 tail", "\ufffd tail"),
        ("line\u2028sep\x00", "line\u2028sep\x00"),
    ],
)
def test_lone_surrogates_do_not_break_the_json(text: str, written: str) -> None:
    event = ev.ToolProposed(req_id="c", name=text, arguments={text: [text, 1.5, None]}, task_id="t")
    encoded = event.to_json()
    encoded.encode("utf-8")
    assert json.loads(encoded)["arguments"] == {written: [written, 1.5, None]}
    assert json.loads(encoded)["name"] == written


def test_values_that_json_does_not_know_are_written_as_text() -> None:
    arguments = {"path": Path("a/b"), "nan": float("nan"), "big": 10**30, "bad": "\ud800"}
    event = ev.ToolProposed(req_id="c", name="n", arguments=arguments, task_id="t")
    written = json.loads(event.to_json())["arguments"]
    assert written == {"path": "a/b", "nan": None, "big": 10**30, "bad": "\ufffd"}
