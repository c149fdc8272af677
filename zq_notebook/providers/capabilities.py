"""What is known about a model by its name: context window, price, whether it sees pictures.

Windows and prices come from the genai-prices package, which brings its data with it; nothing here uses the network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from zq_notebook.engine.limits import DEFAULT_CONTEXT_WINDOW
from zq_notebook.engine.messages import TokenUsage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

T = TypeVar("T")
_Reference = tuple[str, str | None]  # a model's name, and the provider that is meant

_MAKERS = ("openai", "google", "anthropic", "deepseek", "x-ai", "qwen", "moonshotai", "z-ai")

_SEES = re.compile(r"vision|vl\b|[-_]vl|omni|multimodal|llava|pixtral|vlm|ocr")
_TEXT_ONLY = re.compile(
    r"gpt-3\.5|gpt-4(?:-0\d{3}|-32k)?$|gpt-oss|o1-(?:mini|preview)|o3-mini"
    r"|deepseek|code-?llama|llama-?2|llama-?3(?:[.:\-]|$)|mixtral|mistral-(?:7b|nemo)|mistral$|codestral|devstral"
    r"|phi-?[1-4]|qwen-?(?:1|2|3)?(?:\.5)?(?:[:\-]|$)|qwq|gemma-?(?:1|2)?(?:[:\-](?!3)|$)|starcoder|smollm|nemotron"
    r"|command-r|kimi-k2(?!\.)|glm-4\.[56](?!v)|minimax-m|grok-(?:2|3|code)|granite|olmo|embedding"
)


def context_window(model: str) -> int:
    """How many tokens ``model`` takes in, 128 000 when nothing is known about it."""
    return _window(model) or DEFAULT_CONTEXT_WINDOW


def cost(model: str, usage: TokenUsage) -> float | None:
    """What ``usage`` costs with ``model``, in US dollars; ``None`` when its price is not known."""
    from genai_prices import Usage, calc_price

    counts = Usage(
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=min(usage.cached_tokens, usage.prompt_tokens),
        output_tokens=usage.completion_tokens,
    )
    return _first(
        _references(model), lambda name, provider: float(calc_price(counts, name, provider_id=provider).total_price)
    )


def supports_images(model: str) -> bool:
    """Whether ``model`` can be shown pictures.

    Known families answer for themselves; a name that says nothing is trusted to see, as most current models do.
    """
    name = model.lower().rsplit("/", 1)[-1]
    return bool(_SEES.search(name)) or not _TEXT_ONLY.match(name)


@lru_cache(maxsize=256)
def _window(model: str) -> int | None:
    # A maker's name is guessed for the window only: the price of a model that runs at home is not its maker's.
    guesses = [(f"{maker}/{model.strip()}", "openrouter") for maker in _MAKERS if "/" not in model]
    return _first([*_references(model), *guesses], lambda name, provider: _model_info(name, provider).context_window)


def _model_info(name: str, provider: str | None) -> ModelInfo:
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot().find_provider_model(name, None, provider, None)[1]


def _first(references: Iterable[_Reference], look: Callable[[str, str | None], T | None]) -> T | None:
    """The first answer that ``look`` gives under one of the names that a model may go by."""
    for name, provider in references:
        try:
            found = look(name, provider)
        except (LookupError, ValueError):
            continue
        if found is not None:
            return found
    return None


def _references(model: str) -> Iterator[_Reference]:
    """``openai/gpt-4o`` may be OpenAI's model, OpenRouter's name for it, or a gateway's; ``gpt-4o`` is itself."""
    name = model.strip()
    if not name:
        return
    yield name, None
    if "/" in name:
        provider, rest = name.split("/", 1)
        yield rest, provider
        yield name, "openrouter"
        yield name.rsplit("/", 1)[1], None
