"""How a history is written for each API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq_notebook.engine.messages import Message
from zq_notebook.providers.chat_wire import ChatWire
from zq_notebook.providers.responses_wire import ResponsesWire
from zq_notebook.providers.wire import Ask, Wire

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALLS = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}]
TOOL = {"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}
SEARCH = {"type": "function", "function": {"name": "web_search", "parameters": {"type": "object"}}}
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "Be good."},
    {"role": "user", "content": "Look."},
    {"role": "assistant", "content": "", "tool_calls": CALLS, "reasoning": "thought", "attachments": ["x"]},
    {"role": "tool", "tool_call_id": "c1", "content": "seen", "notice": True},
    {"role": "assistant", "content": "I saw.", "provider_items": None, "req_id": "r"},
]
WIRES: list[Wire] = [ChatWire(), ResponsesWire()]


def chat(messages: Any = HISTORY, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(ChatWire().body(Ask(model=fields.pop("model", "m"), messages=messages, **fields)))
    return body


def responses(messages: Any = HISTORY, **fields: Any) -> dict[str, Any]:
    model = fields.pop("model", "m")
    body: dict[str, Any] = json.loads(ResponsesWire().body(Ask(model=model, messages=messages, **fields)))
    return body


def test_chat_sends_only_what_the_api_knows() -> None:
    assert chat() == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": None, "tool_calls": CALLS},
            {"role": "tool", "tool_call_id": "c1", "content": "seen"},
            {"role": "assistant", "content": "I saw."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_responses_sends_items_and_stores_nothing() -> None:
    assert responses() == {
        "model": "m",
        "instructions": "Be good.",
        "input": [
            {"type": "message", "role": "user", "content": "Look."},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a":1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "seen"},
            {"type": "message", "role": "assistant", "content": "I saw."},
        ],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def test_tools_in_the_form_of_each_api() -> None:
    flat = {"name": "flat", "parameters": {"type": "object"}}
    assert chat(tools=[TOOL, flat])["tools"] == [TOOL, {"type": "function", "function": flat}]
    sent = responses(tools=[TOOL, flat])["tools"]
    assert sent[0] == {"type": "function", "strict": False, **TOOL["function"]}
    assert sent[1] == {"type": "function", "strict": False, **flat}
    assert "tools" not in chat()


def test_effort_is_passed_through_but_not_to_deepseek() -> None:
    assert chat(effort="high")["reasoning_effort"] == "high"
    assert responses(effort="high")["reasoning"] == {"effort": "high", "summary": "auto"}
    assert "reasoning_effort" not in chat(effort="high", deepseek=True)
    assert "reasoning" not in responses(effort="high", deepseek=True)


def test_deepseek_searches_on_its_server_instead_of_with_the_local_tool() -> None:
    assert responses(tools=[TOOL, SEARCH], deepseek=True)["tools"][1:] == [{"type": "web_search"}]
    assert [t["function"]["name"] for t in chat(tools=[TOOL, SEARCH], deepseek=True)["tools"]] == ["look", "web_search"]
    assert [t["name"] for t in responses(tools=[TOOL, SEARCH])["tools"]] == ["look", "web_search"]


@pytest.mark.parametrize(
    ("model", "summary", "include"),
    [("gpt-4o-mini", False, False), ("openai/gpt-4.1", False, False), ("gpt-5.2", True, True), ("o3", True, True),
     ("gpt-5-chat-latest", False, False), ("gpt-oss:20b", False, True), ("whatever", False, True)],
)  # fmt: skip
def test_reasoning_is_asked_for_where_the_model_can(model: str, summary: bool, include: bool) -> None:
    body = responses(model=model)
    assert ("reasoning" in body) is summary
    assert ("include" in body) is include


def test_refused_fields_are_left_out() -> None:
    assert "stream_options" not in chat(refused=frozenset({"stream_options"}))
    body = responses(model="gpt-5", refused=frozenset({"include", "reasoning.summary"}))
    assert "include" not in body
    assert "reasoning" not in body


def test_limits_and_options() -> None:
    assert chat(max_tokens=9, options={"temperature": 0, "unknown": 1})["max_tokens"] == 9
    assert chat(max_tokens=9, official=True)["max_completion_tokens"] == 9
    body = responses(max_tokens=9, options={"temperature": 0, "unknown": 1})
    assert body["max_output_tokens"] == 16
    assert body["temperature"] == 0
    assert "unknown" not in body


def test_pictures_of_tools_follow_all_tool_messages_of_the_reply() -> None:
    two = [*CALLS, {**CALLS[0], "id": "c2"}]
    history = [
        {"role": "assistant", "content": None, "tool_calls": two},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "plot"}, PICTURE]},
        {"role": "tool", "tool_call_id": "c2", "content": [PICTURE]},
        {"role": "user", "content": "go on"},
    ]
    sent = chat(history)["messages"]
    assert [m["role"] for m in sent] == ["assistant", "tool", "tool", "user", "user"]
    assert sent[1]["content"] == "plot"
    assert sent[2]["content"]
    assert [p["type"] for p in sent[3]["content"]] == ["text", "image_url", "text", "image_url"]
    assert chat(history[:3])["messages"] == sent[:4]
    output = responses(history)["input"][2:4]
    assert output[0]["output"] == [
        {"type": "input_text", "text": "plot"},
        {"type": "input_image", "image_url": PICTURE["image_url"]["url"], "detail": "auto"},  # type: ignore[index]
    ]


def test_model_that_cannot_see_gets_one_note_in_place_of_pictures() -> None:
    history = [
        Message(role="user", content=[{"type": "text", "text": "see"}, PICTURE, PICTURE, "and say"]),
        Message(role="assistant", content=None, tool_calls=CALLS),
        Message(role="tool", tool_call_id="c1", content=[{"type": "text", "text": "plot"}, PICTURE]),
    ]
    note = "[image not shown: this model cannot see pictures]"
    seen = chat(history), responses(history)
    blind_chat, blind_responses = chat(history, model="deepseek-chat"), responses(history, model="deepseek-chat")
    assert [part["text"] for part in blind_chat["messages"][0]["content"]] == ["see", note, "and say"]
    assert blind_chat["messages"][2:] == [{"role": "tool", "tool_call_id": "c1", "content": f"plot\n{note}"}]
    assert [part["text"] for part in blind_responses["input"][0]["content"]] == ["see", note, "and say"]
    assert [part["text"] for part in blind_responses["input"][2]["output"]] == ["plot", note]
    # A change of models shows each one what it can take.
    assert (chat(history), responses(history)) == seen
    assert "AAAA" in json.dumps(seen[0])
    assert "AAAA" in json.dumps(seen[1])


def test_user_parts() -> None:
    content = [{"type": "text", "text": "see", "cache": 1}, {**PICTURE, "name": "a.png"}, {"type": "strange"}]
    history = [{"role": "user", "content": content}]
    assert chat(history)["messages"][0]["content"] == [{"type": "text", "text": "see"}, PICTURE]
    assert [p["type"] for p in responses(history)["input"][0]["content"]] == ["input_text", "input_image"]


def test_arguments_that_are_no_json_do_not_poison_the_history() -> None:
    broken = [{"id": "c1", "function": {"name": "look", "arguments": '{"a": '}}]
    history = [{"role": "assistant", "content": "", "tool_calls": broken}]
    for sent in (
        chat(history)["messages"][0]["tool_calls"][0]["function"]["arguments"],
        responses(history)["input"][0]["arguments"],
    ):
        assert json.loads(sent) == {"invalid_arguments": '{"a": '}


def test_surrogates_in_text_and_arguments_are_repaired() -> None:
    arguments = '{"a":"\udc00"}'
    history = [
        {"role": "user", "content": "a\ud83cb"},
        {
            "role": "assistant",
            "content": "\ud83c\udf89",
            "tool_calls": [{"id": "c", "name": "t", "arguments": arguments}],
        },
    ]
    sent = chat(history)["messages"]
    assert sent[0]["content"] == "a\ufffdb"
    assert sent[1]["content"] == "🎉"
    assert responses(history)["input"][0]["content"] == "a\ufffdb"


ITEMS = {
    "model": "m",
    "items": [
        {"type": "reasoning", "id": "rs", "encrypted_content": "e", "summary": []},
        {"type": "message", "chars": 2, "id": "msg"},
        {"type": "web_search_call", "id": "ws"},
        {"type": "message", "chars": 1},
        {"type": "function_call", "call_id": "c1", "id": "fc"},
        {"type": "reasoning", "id": "rs2", "encrypted_content": "e", "summary": []},
    ],
}
THOUGHT = {"role": "assistant", "content": "Hi!", "tool_calls": CALLS, "provider_items": ITEMS}


def test_reasoning_comes_back_with_what_followed_it() -> None:
    sent = responses([THOUGHT])["input"]
    assert [i["type"] for i in sent] == ["reasoning", "message", "web_search_call", "message", "function_call"]
    assert [i.get("id") for i in sent] == ["rs", "msg", "ws", None, "fc"]
    assert sent[1]["content"][0]["text"] + sent[3]["content"][0]["text"] == "Hi!"
    assert sent[4]["arguments"] == '{"a":1}'


@pytest.mark.parametrize(
    "change",
    [
        {"tool_calls": None},
        {"content": "Edited."},
        {"tool_calls": [*CALLS, {**CALLS[0], "id": "c2"}]},
        {"model": "other"},
    ],
)
def test_reasoning_stays_away_from_anything_else(change: dict[str, Any]) -> None:
    model = change.pop("model", "m")
    sent = responses([{**THOUGHT, **change}], model=model)["input"]
    assert "reasoning" not in [i["type"] for i in sent]
    assert sent[0]["type"] == "message"


def test_switching_models_and_back_keeps_each_encoding() -> None:
    message = Message(THOUGHT)
    kinds = [[i["type"] for i in responses([message], model=m)["input"]] for m in ("m", "other", "m")]
    assert "reasoning" in kinds[0]
    assert "reasoning" not in kinds[1]
    assert kinds[2] == kinds[0]


def test_deepseek_gets_its_thought_back_with_the_call() -> None:
    message = {"role": "assistant", "content": "", "tool_calls": CALLS, "provider_items": {"reasoning_content": "hm"}}
    assert chat([message], deepseek=True)["messages"][0]["reasoning_content"] == "hm"
    assert "reasoning_content" not in chat([message])["messages"][0]


@pytest.mark.parametrize("wire", WIRES, ids=lambda w: w.name)
def test_each_message_is_encoded_once(wire: Wire) -> None:
    messages = list(map(Message, HISTORY))
    first = wire.body(Ask(model="m", messages=messages))
    marked = {id(m): dict(m.encoded) for m in messages[1:]}
    assert all(marked.values())
    assert wire.body(Ask(model="m", messages=messages)) == first
    assert all(m.encoded[key] is kept for m in messages[1:] for key, kept in marked[id(m)].items())
    messages[1]["content"] = "Changed."
    assert b"Changed." in wire.body(Ask(model="m", messages=messages))


_texts = st.text(max_size=20)
_messages = st.lists(
    st.one_of(
        st.fixed_dictionaries({"role": st.just("user"), "content": _texts}),
        st.fixed_dictionaries({"role": st.just("assistant"), "content": _texts}),
        st.fixed_dictionaries({"role": st.just("user"), "content": st.just([{"type": "text", "text": "x"}, PICTURE])}),
        st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": _texts, "content": st.just([PICTURE])}),
    ),
    max_size=8,
)


@pytest.mark.parametrize("wire", WIRES, ids=lambda w: w.name)
@given(history=_messages, more=st.fixed_dictionaries({"role": st.just("user"), "content": _texts}))
def test_prefix_is_byte_identical(wire: Wire, history: list[dict[str, Any]], more: dict[str, Any]) -> None:
    """Adding a message changes nothing before it, whether or not messages keep their encoding."""
    kept = list(map(Message, [{"role": "system", "content": "s"}, *history]))
    before = wire.body(Ask(model="m", messages=kept))
    after = wire.body(Ask(model="m", messages=[*kept, Message(more)]))
    prefix = before[: before.rindex(b'],"stream"')]
    assert after.startswith(prefix)
    assert wire.body(Ask(model="m", messages=[dict(m) for m in kept])) == before
