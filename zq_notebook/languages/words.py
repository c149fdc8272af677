"""The notebook's own words: buttons, states, messages, in the user's language."""

from __future__ import annotations

import msgspec


class UiWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One language's buttons and messages; ``{names}`` in a text are filled with ``str.format`` by whoever shows it.

    Numbers and durations are passed in already formatted. States are named after the wire values, so that
    :meth:`mode`, :meth:`status` and :meth:`turn` can translate what an event carries.
    """

    # Buttons and fields
    allow_once: str
    always_tool: str
    always_command: str
    deny: str
    reason_placeholder: str
    stop: str
    stopping: str
    send: str
    answer: str
    answer_placeholder: str
    steer_placeholder: str
    undo_turn: str

    # Modes in words
    mode_interactive: str
    mode_auto: str
    mode_plan: str
    mode_discuss: str

    # The life of a call; ``allowed_…`` says how it came to run
    thinking: str
    thought_for: str
    status_running: str
    status_waiting: str
    status_ok: str
    status_error: str
    status_denied: str
    status_interrupted: str
    denied_reason: str
    allowed_once: str
    allowed_tool: str
    allowed_command: str
    allowed_unasked: str

    # How a turn ended
    turn_completed: str
    turn_interrupted: str
    turn_error: str
    turn_max_iterations_exceeded: str
    no_answer: str

    # Footer
    tokens: str
    footer_variables: str
    footer_files: str
    footer_cells: str
    footer_usage: str
    none: str
    new: str
    changed: str
    unchanged: str
    deleted: str
    pending: str
    more: str

    # The approval card: what will happen, what it touches, how it can be taken back
    ask_tool: str
    ask_code: str
    ask_command: str
    ask_write: str
    ask_edit: str
    ask_external: str
    effect_tool: str
    effect_code: str
    effect_command: str
    effect_write: str
    effect_edit: str
    effect_external: str
    always_tool_hint: str
    always_command_hint: str
    hidden_characters: str
    scrolls: str
    announce_approval: str
    answered_card: str
    answered_input: str
    answered_policy: str
    input_choices: str
    input_choices_tool: str
    input_reason: str
    input_again: str
    unattended_denied: str
    unattended_allowed: str
    unattended_error: str

    # Questions and notices while a turn runs
    question_title: str
    choose_one: str
    choose_several: str
    retrying: str
    compacting: str
    compacted: str
    steering_added: str
    view_waiting: str
    demo_notice: str

    # Headings inside a card
    label_arguments: str
    label_code: str
    label_output: str
    label_result: str
    label_error: str
    label_reasoning: str
    figure: str
    saved_to: str
    not_shown: str

    # %agent
    label_role: str
    label_model: str
    label_mode: str
    label_session: str
    label_workspace: str
    label_turns: str
    label_tokens: str
    label_cost: str
    label_tools: str
    label_allowed_tools: str
    label_allowed_commands: str
    not_set: str
    cost_unknown: str
    model_set: str
    mode_set: str
    role_set: str
    session_new: str
    stop_requested: str
    nothing_running: str
    command_allowed: str

    def mode(self, mode: str) -> str:
        """A permission mode in words ("asks before acting"); a mode without a word stays as it is."""
        return self._word("mode_", mode)

    def status(self, status: str) -> str:
        """A tool call's state (``running``, ``waiting``, ``ok``, ``error``, ``denied``, ``interrupted``) in words."""
        return self._word("status_", status)

    def turn(self, status: str) -> str:
        """A ``turn_end`` status in words."""
        return self._word("turn_", status)

    def _word(self, prefix: str, value: str) -> str:
        # str() turns a StrEnum member into its wire value.
        return str(getattr(self, prefix + str(value), value))
