"""Windows, prices and eyes, by a model's name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from zq_notebook.engine.messages import TokenUsage
from zq_notebook.providers.capabilities import context_window, cost, supports_images


@pytest.mark.parametrize(
    "model", ["gpt-4o", "openai/gpt-4o", "openrouter/openai/gpt-4o", "GPT-4o", "gpt-4o-2024-08-06"]
)
def test_window_is_found_under_every_usual_name(model: str) -> None:
    assert context_window(model) == 128_000


def test_window_differs_from_the_default_where_it_is_known() -> None:
    assert context_window("gpt-5") == 400_000
    assert context_window("gemini-2.5-pro") > 1_000_000
    assert context_window("anthropic/claude-sonnet-4-5") >= 200_000


@pytest.mark.parametrize("model", ["", " ", "/", "a/", "no-such-model", "my/own/model:7b", "ü\ud800", "x" * 5000])
def test_unknown_names_get_the_default_and_no_price(model: str) -> None:
    assert context_window(model) == 128_000
    assert cost(model, TokenUsage(prompt_tokens=10)) is None


def test_cost_counts_cached_tokens_at_their_own_price() -> None:
    plain = cost("gpt-4o", TokenUsage(prompt_tokens=1000, completion_tokens=100))
    cached = cost("gpt-4o", TokenUsage(prompt_tokens=1000, completion_tokens=100, cached_tokens=800))
    assert plain == pytest.approx(0.0035)
    assert cached == pytest.approx(0.0025)
    assert cost("openai/gpt-4o", TokenUsage(prompt_tokens=1000, completion_tokens=100)) == plain


def test_cost_survives_more_cached_tokens_than_there_were() -> None:
    assert cost("gpt-4o", TokenUsage(prompt_tokens=10, cached_tokens=99)) is not None


def test_a_model_at_home_has_no_price() -> None:
    assert cost("qwen3-coder", TokenUsage(prompt_tokens=10)) is None


def test_nothing_used_costs_nothing() -> None:
    assert cost("gpt-4o", TokenUsage()) == 0


@pytest.mark.parametrize(
    "model",
    [
        *("gpt-4o", "gpt-4.1-mini", "gpt-4-turbo", "gpt-5", "o3", "o4-mini", "claude-sonnet-4-5", "gemini-2.5-pro"),
        *("llama3.2-vision", "llama-4-scout", "qwen2.5-vl:7b", "qwen/qwen3-vl-8b", "gemma3:4b", "gemma-3-27b", "llava"),
        *("pixtral-12b", "grok-4", "kimi-k2.5", "demo", "my-own-model", ""),
    ],
)
def test_models_that_see(model: str) -> None:
    assert supports_images(model)


@pytest.mark.parametrize(
    "model",
    [
        *("gpt-3.5-turbo", "gpt-4", "gpt-4-0613", "o3-mini", "deepseek-chat", "deepseek/deepseek-r1", "gpt-oss:20b"),
        *("llama3.1:8b", "llama3", "llama-3.3-70b-versatile", "meta-llama/llama-3.3-70b-instruct", "qwen2.5:7b"),
        *("qwen2.5-coder:7b", "qwen3:8b", "qwen3-coder", "mistral", "mixtral:8x7b", "phi4", "gemma2:2b", "codestral"),
    ],
)
def test_models_that_only_read(model: str) -> None:
    assert not supports_images(model)


def test_prices_are_not_loaded_before_they_are_asked_for() -> None:
    code = "import sys, zq_notebook.providers.capabilities as c; c.supports_images('x')"
    code += "; assert 'genai_prices' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
