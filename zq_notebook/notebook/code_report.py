"""What a piece of code did, told to the model and shown on its card."""

from __future__ import annotations

import html

from zq_notebook.notebook.code_run import CodeOutcome
from zq_notebook.text.safe_html import sanitize_html
from zq_notebook.text.truncate import clip_middle
from zq_notebook.toolio import ToolOutput

_MAX_CARD_TEXT = 20_000


def report(outcome: CodeOutcome, timeout: float) -> ToolOutput:
    """The tool's output; ``timeout`` is the limit in seconds that was in force."""
    return ToolOutput(
        text="\n".join(_sections(outcome, timeout)),
        images=outcome.images,
        ok=outcome.error is None and outcome.stop_reason is None,
        error_type=_error_type(outcome),
        summary=_summary(outcome),
        display=_display(outcome),
    )


def _error_type(outcome: CodeOutcome) -> str | None:
    if outcome.still_running:
        return "StillRunning"
    if outcome.stop_reason == "timeout":
        return "TimeoutError"
    if outcome.stop_reason is not None:
        return "Interrupted"
    return outcome.error.ename if outcome.error else None


def _sections(outcome: CodeOutcome, timeout: float) -> list[str]:
    parts: list[str] = []
    stop = _how_it_ended(outcome, timeout)
    if stop:
        parts.append(stop)
    if outcome.error is not None:
        parts.append(f"Error:\n{outcome.error.as_text()}")
    if outcome.stdout:
        parts.append(f"stdout:\n{outcome.stdout.rstrip()}")
    parts += [f"displayed:\n{text}" for text in outcome.displays if text]
    if outcome.result is not None:
        parts.append(f"result:\n{outcome.result}")
    if outcome.stderr:
        parts.append(f"stderr:\n{outcome.stderr.rstrip()}")
    parts += _about_pictures(outcome)
    if not parts:
        parts.append("Done. No output, no value on the last line.")
    parts.append(f"[{outcome.duration:.2f} s]")
    return parts


def _how_it_ended(outcome: CodeOutcome, timeout: float) -> str:
    if outcome.still_running:
        return (
            f"STILL RUNNING: the code was told three times to stop ({_who(outcome, timeout)}) and ignored it. It "
            "still holds the kernel's main thread; nothing else can run there until it ends "
            "or the user restarts the kernel. Below is its output so far."
        )
    if outcome.stop_reason is None:
        return ""
    return (
        f"STOPPED after {outcome.duration:.1f} s ({_who(outcome, timeout)}). What ran before that point has taken "
        "effect; the rest did not run."
    )


def _who(outcome: CodeOutcome, timeout: float) -> str:
    return f"time limit of {timeout:g} s" if outcome.stop_reason == "timeout" else "interrupted by the user"


def _about_pictures(outcome: CodeOutcome) -> list[str]:
    notes = []
    if outcome.images:
        names = "; ".join(image.alt or "picture" for image in outcome.images)
        count = "1 image" if len(outcome.images) == 1 else f"{len(outcome.images)} images"
        notes.append(f"[{count} attached, also shown to the user: {names}]")
    if outcome.images_omitted:
        notes.append(f"[{outcome.images_omitted} image(s) not attached: too many or too large]")
    if outcome.displays_omitted:
        notes.append(f"[{outcome.displays_omitted} more displays were not kept]")
    if outcome.passed_through:
        notes.append(f"[shown to the user in the cell: {', '.join(outcome.passed_through)}]")
    return notes


def _summary(outcome: CodeOutcome) -> str:
    if outcome.still_running:
        return "still running"
    if outcome.stop_reason is not None:
        return "time limit" if outcome.stop_reason == "timeout" else ""  # the call's own status says it
    if outcome.error is not None:
        return outcome.error.ename
    if outcome.images:
        return f"{len(outcome.images)} image{'s' if len(outcome.images) > 1 else ''}"
    text = (outcome.result or outcome.stdout).strip().partition("\n")[0]
    return text if len(text) <= 60 else text[:59] + "…"


def _display(outcome: CodeOutcome) -> dict[str, str]:
    """The card's body: text as text, tables as tables."""
    blocks: list[tuple[str, str]] = []  # (plain, html)

    def text(kind: str, content: str) -> None:
        if content.strip():
            shown = clip_middle(content.rstrip(), _MAX_CARD_TEXT)
            blocks.append((shown, f'<pre class="zq-{kind}">{html.escape(shown)}</pre>'))

    text("stdout", outcome.stdout)
    tables = [table for table in (*outcome.display_html, outcome.result_html) if table]
    for table in tables:
        blocks.append(("", sanitize_html(table)))
    if outcome.result is not None and outcome.result_html is None and not outcome.passed_through:
        text("result", outcome.result)
    for shown in outcome.displays if not (outcome.display_html or outcome.images or outcome.passed_through) else ():
        text("result", shown)
    text("stderr", outcome.stderr)
    if outcome.error is not None:
        text("error", outcome.error.as_text())
    plain = "\n".join(block for block, _ in blocks if block) or (outcome.result or "")
    if not blocks:
        # Something of the card's own, as the model's text ends with the time that the code took.
        return {"text/plain": "\n".join(_about_pictures(outcome)) or "No output."}
    return {"text/plain": plain, "text/html": "\n".join(markup for _, markup in blocks)}
