"""What the model ``demo`` says: a scene for each task of the quickstart notebook and of the README, one for others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zq_notebook.engine.messages import ToolCall
from zq_notebook.providers.base import text_of
from zq_notebook.providers.scripted import Step

WHO_IS_SPEAKING = (
    "*This is the scripted demo model: its words were written beforehand, the tools it calls and their results are "
    "real.*"
)
REAL_MODEL = (
    "To work with a real model, set `OPENAI_API_KEY` (for another OpenAI-compatible server, such as one on this "
    "machine, `OPENAI_BASE_URL` too) and choose it with `%agent model NAME`. `%agent doctor` checks both."
)


@dataclass(frozen=True)
class Turn:
    """What a scripted reply may depend on.

    prompt: the last user message, in lower case and with single spaces; replies: how often the model answered since;
    results: what the tools returned since, in order; earlier: what they returned before; offered: the names of the
    tools; calls: how many calls the whole conversation holds; first: whether the model has said nothing before.
    """

    prompt: str
    replies: int
    results: tuple[str, ...]
    earlier: tuple[str, ...]
    offered: frozenset[str]
    calls: int
    first: bool

    @classmethod
    def of(cls, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Turn:
        """The turn at the end of ``messages``."""
        asked = max((n for n, message in enumerate(messages) if message.get("role") == "user"), default=-1)
        since = messages[asked + 1 :]
        return cls(
            prompt=" ".join(text_of(messages[asked]).lower().split()) if asked >= 0 else "",
            replies=sum(message.get("role") == "assistant" for message in since),
            results=_results(since),
            earlier=_results(messages[: max(asked, 0)]),
            offered=frozenset(str(tool.get("function", tool).get("name")) for tool in tools),
            calls=sum(len(message.get("tool_calls") or ()) for message in messages),
            first=not any(message.get("role") == "assistant" for message in messages[: max(asked, 0)]),
        )

    def find(self, pattern: str) -> tuple[str, ...] | None:
        """The groups of the last match of ``pattern`` in the results of this turn, None when nothing matches."""
        return _last_match(pattern, self.results)

    def recall(self, pattern: str) -> tuple[str, ...] | None:
        """The same in the results of the whole conversation."""
        return _last_match(pattern, (*self.earlier, *self.results))

    def say(self, text: str, tool: str = "", **arguments: str | int) -> Step:
        """A reply, with a call of ``tool`` if one is named. The first one of a conversation says who is speaking."""
        if self.first and self.replies == 0:
            text = f"{WHO_IS_SPEAKING}\n\n{text}"
        calls = [ToolCall.of({"id": f"demo_{self.calls + 1}", "name": tool, "arguments": arguments})] if tool else []
        return Step(text, tool_calls=calls)


def _results(messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(text_of(message) for message in messages if message.get("role") == "tool")


def _last_match(pattern: str, texts: Sequence[str]) -> tuple[str, ...] | None:
    found = [match.groups() for text in texts for match in re.finditer(pattern, text)]
    return found[-1] if found else None


def next_step(turn: Turn) -> Step:
    """The reply of the first scene that knows the prompt and has the tools it needs."""
    for scene in SCENES:
        if scene.phrase in turn.prompt and scene.tools <= turn.offered:
            return scene.play(turn)
    return introduce(turn)


def introduce(turn: Turn) -> Step:
    """The turn for every task that is not in the script: look at the variables once, then explain."""
    if turn.replies == 0 and "list_variables" in turn.offered:
        return turn.say("Let me see what this kernel holds.", "list_variables")
    looked = "The list of variables above is real; what I say about it is not. " if turn.results else ""
    return turn.say(
        f"{looked}I only follow a script for the tasks of the quickstart notebook, and this task is not one of them. "
        f"{REAL_MODEL}"
    )


# -- the quickstart: what has to be cleaned

COUNT_PROBLEMS = """\
print("rows that stand twice:", orders.duplicated().sum())
print("rows without a unit price:", orders["unit_price"].isna().sum())"""


def inspect_orders(turn: Turn) -> Step:
    """Look at the variables, then at the table, then count; the count asks for approval."""
    match turn.replies:
        case 0:
            return turn.say("Before I assume anything I look at what is there.", "list_variables")
        case 1:
            return turn.say("`orders` is the table. Its columns, types and gaps:", "inspect_variable", name="orders")
        case 2:
            text = "Prices are missing in some rows. Whether orders stand in the table twice, only a count can say."
            return turn.say(text, "run_code", code=COUNT_PROBLEMS)
    twice, unpriced = turn.find(r"stand twice: (\d+)"), turn.find(r"without a unit price: (\d+)")
    if twice is None or unpriced is None:
        return turn.say(
            "The count did not run, so I only know what the inspection shows: some rows have no unit price. Whether "
            "orders stand in the table twice I do not know, and I will not guess. Allow `run_code` and I count them."
        )
    return turn.say(
        f"Two things have to go before anything is added up:\n\n"
        f"- **{twice[0]} rows** stand in the table twice. Left in, they count as revenue twice.\n"
        f"- **{unpriced[0]} rows** have no unit price. Their revenue is unknown, not zero.\n\n"
        f"I have changed nothing so far."
    )


# -- the quickstart: which region fell, and why

ROWS = r"rows: (\d+) before, (\d+) after"
FALLEN = r"largest fall: (\w+) -([\d.]+)%, elsewhere at most ([\d.]+)%"
LOST = r"largest loss: (\w+) -([\d,]+) of -([\d,]+)"

CLEAN = """\
clean = orders.drop_duplicates().dropna(subset=["unit_price"])
clean = clean.assign(
    revenue=clean["units"] * clean["unit_price"],
    quarter=clean["date"].dt.to_period("Q").astype(str),
)
by_region = clean.pivot_table(index="region", columns="quarter", values="revenue", aggfunc="sum").round(2)
change = by_region.iloc[:, 1] / by_region.iloc[:, 0] - 1
fallen = change.idxmin()
print(f"rows: {len(orders)} before, {len(clean)} after cleaning")
print(f"largest fall: {fallen} {change[fallen]:.1%}, elsewhere at most {change.drop(fallen).abs().max():.1%}")
print(by_region.assign(change=change.round(3)).to_string())"""

BY_LINE = """\
lines = clean[clean["region"] == "{region}"].pivot_table(
    index="line", columns="quarter", values="revenue", aggfunc="sum"
)
lines["difference"] = lines.iloc[:, 1] - lines.iloc[:, 0]
lost = lines["difference"]
print(f"largest loss: {{lost.idxmin()}} {{lost.min():,.0f}} of {{lost.sum():,.0f}}")
print(lines.round(0).to_string())"""

PLOT = """\
import matplotlib.pyplot as plt

monthly = clean[clean["region"] == "{region}"].pivot_table(
    index=clean["date"].dt.month, columns="line", values="revenue", aggfunc="sum"
)
fig, ax = plt.subplots(figsize=(7, 3.2))
monthly.plot(ax=ax, marker="o")
ax.set(title="Revenue of {region} by product line", xlabel="month of 2026", ylabel="revenue", ylim=(0, None))
plt.show()"""


def explain_fall(turn: Turn) -> Step:
    """Clean, compare the regions, split the one that fell, plot it; each piece of code uses the result before it."""
    if turn.replies == 0:
        text = "I leave `orders` as it is and put the cleaned rows into `clean`, then compare the two quarters."
        return turn.say(text, "run_code", code=CLEAN)
    rows, fallen, lost = turn.find(ROWS), turn.find(FALLEN), turn.find(LOST)
    if rows is None or fallen is None or (lost is None and turn.replies > 1):
        return turn.say(NOT_RUN)
    region, percent, elsewhere = fallen
    if lost is None:
        text = f"{region} stands out: down {percent} %. I split it by product line."
        return turn.say(text, "run_code", code=BY_LINE.format(region=region))
    line, loss, total = lost[0].lower(), *lost[1:]
    if turn.replies == 2:
        return turn.say(f"It is {line}. The months show when it began.", "run_code", code=PLOT.format(region=region))
    return turn.say(
        f"**{region} fell by {percent} % from the first quarter to the second, and {line} explain most of it.**\n\n"
        f"- {region} lost {total}, and {line} alone lost {loss} of that.\n"
        f"- No other region moved by more than {elsewhere} %.\n"
        f"- {int(rows[0]) - int(rows[1])} of {int(rows[0]):,} rows were left out: they stood twice or had no price.\n\n"
        f"`clean` and `by_region` are yours to go on with."
    )


NOT_RUN = (
    "The code did not run to its end, so I stop here instead of guessing. This script needs the table `orders` of the "
    "quickstart notebook and permission to run code: *Allow once* on the card, or `%agent allow run_code` beforehand."
)


# -- the quickstart: the report, and what was left open

REPORT = """\
# Why {region} fell

Revenue of {region}, second quarter of 2026 against the first: down {percent} %.
No other region moved by more than {elsewhere} %.

- {region} lost {total}; {line} alone lost {loss} of that.
- {out} of {before} rows were left out: they stood twice or had no unit price.

Not checked: whether June is complete, whether prices changed, and why {line} sold less.
"""


def write_report(turn: Turn) -> Step:
    """Write the findings of this conversation to a file; asks for approval."""
    rows, fallen, lost = turn.recall(ROWS), turn.recall(FALLEN), turn.recall(LOST)
    if rows is None or fallen is None or lost is None:
        return turn.say("There is nothing to write yet: in this conversation nothing was calculated.")
    if turn.replies == 0:
        region, percent, elsewhere = fallen
        line, loss, total = lost[0].lower(), *lost[1:]
        content = REPORT.format(
            region=region,
            percent=percent,
            elsewhere=elsewhere,
            line=line,
            loss=loss,
            total=total,
            before=rows[0],
            out=int(rows[0]) - int(rows[1]),
        )
        return turn.say("I put the findings into a short report.", "write_file", path="out/west.md", content=content)
    # What was refused is told in the language of the session; what the tool itself says is always the same.
    if turn.find(r"^(Created|Overwrote) ") is None:
        return turn.say("The report was not written. Nothing has changed on disk.")
    return turn.say("The report is in `out/west.md`.")


def say_what_is_open(turn: Turn) -> Step:
    """An answer from the conversation alone."""
    fallen, lost = turn.recall(FALLEN), turn.recall(LOST)
    if fallen is None or lost is None:
        return turn.say("I have not calculated anything in this conversation, so nothing of it is checked.")
    return turn.say(
        f"Three things, and the first matters most:\n\n"
        f"1. **Is June complete?** If orders reach the table late, part of the fall by {fallen[1]} % is only delay.\n"
        f"2. **Prices.** I compared revenue. Whether {lost[0].lower()} sold less often or more cheaply is open.\n"
        f"3. **The cause.** The table says *what* fell. *Why* customers in {fallen[0]} buy other things is not in it."
    )


# -- the README: a program of one's own

NAMED = 8  # entries that are called by their names


def look_into_folder(turn: Turn) -> Step:
    """List the folder, then say what the list holds."""
    if turn.replies == 0:
        return turn.say("Let me look.", "list_files", path=".", depth=1)
    listing = turn.results[-1] if turn.results else ""
    if "is empty, or everything in it is ignored" in listing:
        return turn.say("Nothing is in this folder, or nothing that its `.gitignore` lets me see.")
    *entries, footer = listing.splitlines() or [""]
    if not entries or not footer.endswith("1 levels deep]"):
        return turn.say("The folder could not be listed, so I do not know what is in it.")
    more = re.match(r"\[([\d,]+) more", footer)
    total = len(entries) + (int(more[1].replace(",", "")) if more else 0)
    names = ", ".join(f"`{entry.partition(' -> ')[0]}`" for entry in entries[:NAMED])
    rest = f" and {total - NAMED:,} more" if total > NAMED else ""
    return turn.say(f"This folder holds {total:,} {'entry' if total == 1 else 'entries'}: {names}{rest}.")


@dataclass(frozen=True)
class Scene:
    """A turn in the script: a phrase that its prompt holds, the tools it needs, and what it does."""

    phrase: str
    tools: frozenset[str]
    play: Callable[[Turn], Step]


SCENES = (
    Scene("what has to be cleaned", frozenset({"list_variables", "inspect_variable", "run_code"}), inspect_orders),
    Scene("which region lost revenue", frozenset({"run_code"}), explain_fall),
    Scene("write what you found to out/west.md", frozenset({"write_file"}), write_report),
    Scene("what did you not check", frozenset(), say_what_is_open),
    Scene("what is in this folder", frozenset({"list_files"}), look_into_folder),
)
