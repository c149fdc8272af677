"""Keys that must not be seen, and texts that must not be touched."""

from __future__ import annotations

import io
import json
import logging
import string
import timeit
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq_notebook.text.redact import MASK, MIN_LENGTH, RedactingFilter, Redactor, StreamRedactor, shared
from zq_notebook.tools.shell_env import scrubbed_environment

KEY = "sk-proj-4fT9xQ2mZ7wLk1Vb8nRc"

PEM = "-----BEGIN PRIVATE KEY-----\nMIIEow+abc/12\nabc=\n-----END PRIVATE KEY-----"

# Values that are taken for a secret when registered.
secrets = st.text(string.ascii_letters + string.digits + '-_"\\/+ é', min_size=MIN_LENGTH, max_size=40).filter(
    lambda value: value == value.strip() and Redactor(environ={}).add(value)
)


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(environ={})


@pytest.mark.parametrize(
    "key",
    [
        KEY,
        "sk-ant-api03-abcdefghij0123456789",
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2_" * 6,
        "xoxb-123456789012-abcdefghijkl",
        "AKIAIOSFODNN7EXAMPLE",
        "AIza" + "Sy0-_" * 7,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_well_known_key_shapes_are_masked_anywhere(redactor: Redactor, key: str) -> None:
    assert redactor.redact(key) == MASK
    assert redactor.redact(f'{{"key":"{key}"}}') == f'{{"key":"{MASK}"}}'
    assert redactor.redact(f"OPENAI_API_KEY={key}\nnext") == f"OPENAI_API_KEY={MASK}\nnext"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdef0123456789abcdef", f"Authorization: Bearer {MASK}"),
        ("authorization: bearer abcdef0123456789abcdef", f"authorization: bearer {MASK}"),
        ("http://ana:hunter2hunter2@proxy:3128/x", f"http://ana:{MASK}@proxy:3128/x"),
    ],
)
def test_what_stands_around_a_secret_stays(redactor: Redactor, text: str, expected: str) -> None:
    assert redactor.redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "risk-adjusted-return-of-the-whole-portfolio-2024",
        "sk-learn-is-not-a-key-at-all",
        "the bearer of good news, Bearer authentication-everywhere",
        "http://127.0.0.1:8888/lab?path=a@b",
        "AKIA is a prefix; ghp_ is one too",
        "df.groupby('task-1234567890123456').sum()",
    ],
)
def test_ordinary_text_is_left_alone(redactor: Redactor, text: str) -> None:
    assert redactor.redact(text) == text


@pytest.mark.parametrize("value", ["", None, "short", "EMPTY", "1234567", "not-needed", "changeme", "--------", MASK])
def test_short_and_commonplace_values_are_not_registered(redactor: Redactor, value: str | None) -> None:
    assert not redactor.add(value)
    text = f"before {value} after"
    assert redactor.redact(text) == text


def test_secret_looking_variables_are_masked_and_others_are_not() -> None:
    environ = {
        "ACME_API_KEY": "quite-a-plain-value",
        "DB_PASSWORD": "correct horse battery",
        "GITHUB_TOKEN": "tok-en-value",
        "AWS_ACCESS_KEY_ID": "some-key-identity",
        "CLIENT_SECRET_2": "second-of-two",
        "SSH_KEY": "/home/ana/.ssh/id_ed25519",
        "MONKEY": "chimpanzee",
        "KEYBOARD": "qwertyuiop",
        "MAX_TOKENS": "128000000",
    }
    redactor = Redactor(environ=environ)
    for name in ("ACME_API_KEY", "DB_PASSWORD", "GITHUB_TOKEN", "AWS_ACCESS_KEY_ID", "CLIENT_SECRET_2"):
        assert redactor.redact(f"<{environ[name]}>") == f"<{MASK}>", name
    for name in ("SSH_KEY", "MONKEY", "KEYBOARD", "MAX_TOKENS"):
        assert redactor.redact(environ[name]) == environ[name], name


SECRET_NAMES = """PGPASSWORD DB_PASSWORD_FILE GH_TOKEN_OLD API_KEYS_PROD MY_CREDENTIALS_JSON OPENAI_API_KEY api_key_2
    CLIENT_SECRET AUTHKEY NPMTOKEN DB_PASS SSHPASS MYSQL_PWD GITHUB_PAT TOKENS_PROD KEY_OLD AWS_SESSION_TOKEN"""
PLAIN_NAMES = """TURKEY HOTKEY MONKEY KEYBOARD_LAYOUT MAX_TOKENS COMPACTION_CAP_TOKENS TOKENIZERS_PARALLELISM PWD OLDPWD
    PATH PATTERN BYPASS COMPASS"""


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_what_a_secret_name_holds_is_masked_and_withheld_from_commands(name: str) -> None:
    environ = {name: "correct horse battery"}
    assert Redactor(environ=environ).redact("a correct horse battery staple") == f"a {MASK} staple"
    assert name not in scrubbed_environment(environ)


@pytest.mark.parametrize("name", PLAIN_NAMES.split())
def test_what_a_plain_name_holds_is_shown_and_reaches_commands(name: str) -> None:
    environ = {name: "correct horse battery"}
    assert Redactor(environ=environ).redact("correct horse battery") == "correct horse battery"
    assert name in scrubbed_environment(environ)


def test_variable_set_later_is_masked_too() -> None:
    environ: dict[str, str] = {}
    redactor = Redactor(environ=environ)
    assert redactor.redact("late-arrival-1") == "late-arrival-1"
    environ["LATE_TOKEN"] = "late-arrival-1"
    assert redactor.redact("late-arrival-1") == MASK


def test_data_is_redacted_in_depth(redactor: Redactor) -> None:
    data = {"headers": [("Authorization", f"Bearer {KEY}")], KEY: 1, "n": None}
    assert redactor.redact_data(data) == {"headers": [["Authorization", f"Bearer {MASK}"]], MASK: 1, "n": None}


def test_longer_secret_wins_over_one_inside_it(redactor: Redactor) -> None:
    redactor.add("inner-secret")
    redactor.add("outer-inner-secret-outer")
    assert redactor.redact("x outer-inner-secret-outer y inner-secret") == f"x {MASK} y {MASK}"


@given(secret=secrets, before=st.text(), after=st.text())
def test_registered_secret_never_survives(secret: str, before: str, after: str) -> None:
    redactor = Redactor([secret], environ={})
    result = redactor.redact(before + secret + after)
    assert secret not in result
    assert redactor.redact(result) == result


@given(secret=secrets)
def test_secret_is_masked_inside_json_and_urls(secret: str) -> None:
    redactor = Redactor([secret], environ={})
    assert redactor.redact(json.dumps(secret)) == f'"{MASK}"'
    assert redactor.redact(f"?k={quote(secret, safe='')}&n=1") == f"?k={MASK}&n=1"


@given(text=st.text(string.ascii_lowercase + " .,\n", max_size=300))
def test_text_without_secrets_is_unchanged(text: str) -> None:
    assert Redactor([KEY], environ={}).redact(text) == text


@given(data=st.data(), secret=st.one_of(secrets, st.just(KEY), st.just("Bearer abcdef0123456789abcdef"), st.just(PEM)))
def test_key_cut_into_deltas_never_shows(data: st.DataObject, secret: str) -> None:
    words = st.text(string.ascii_letters + " :=\n", max_size=20)
    text = data.draw(words) + " " + secret + " " + data.draw(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    redactor = Redactor([] if secret.startswith(("sk-", "Bearer", "-----B")) else [secret], environ={})
    stream = StreamRedactor(redactor)
    shown = "".join(stream.feed(piece) for piece in pieces) + stream.flush()
    assert secret not in shown
    assert shown == redactor.redact(text)


def test_plain_words_are_not_held_back(redactor: Redactor) -> None:
    redactor.add(KEY)
    stream = StreamRedactor(redactor)
    assert stream.feed("The results are these") == "The results are these"
    assert stream.feed(", and a key: sk-proj-4f") == ", and a key: "
    assert stream.flush() == "sk-proj-4f"


def test_log_records_hold_no_secret_in_message_arguments_or_traceback(redactor: Redactor) -> None:
    redactor.add("registered-value")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter(redactor))
    logger = logging.Logger("zq.test")
    logger.addHandler(handler)
    try:
        raise ValueError("bad value registered-value")
    except ValueError:
        logger.exception("calling with %s and %d", KEY, 7)
    text = stream.getvalue()
    assert "registered-value" not in text
    assert KEY not in text
    assert f"calling with {MASK} and 7" in text
    assert f"ValueError: bad value {MASK}" in text


def test_shared_redactor_is_one_for_the_process() -> None:
    assert shared() is shared()


def test_long_text_without_secrets_costs_little() -> None:
    redactor = Redactor([f"secret-number-{n}" for n in range(20)], environ={})
    text = "the quick brown fox asks for the results of the task. " * 2000  # 110 kB
    seconds = min(timeit.repeat(lambda: redactor.redact(text), number=1, repeat=5))
    assert seconds < 0.05
