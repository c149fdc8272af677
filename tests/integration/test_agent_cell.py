"""``%%agent`` in a real kernel that nobody watches."""

from __future__ import annotations

import pytest

from tests.integration.kernel import Kernel, Reply, running_kernel

SCRIPTED = """
from zq_notebook import ScriptedProvider, Step, register_model
def script(*steps):
    register_model("scripted", ScriptedProvider(steps))
"""


@pytest.fixture(scope="module")
def shared_kernel():
    with running_kernel() as kernel:
        kernel.execute("%load_ext zq_notebook", check=True)
        kernel.execute(SCRIPTED, check=True)
        yield kernel


@pytest.fixture
def kernel(shared_kernel: Kernel) -> Kernel:
    shared_kernel.execute("%agent new\n%agent model scripted\n%agent mode interactive", check=True)
    return shared_kernel


def shown(reply: Reply) -> str:
    """Everything in the cell's outputs, as plain text."""
    return "\n".join(str(d["text/plain"]) for d in reply.displays)


def test_the_answer_is_shown_and_bound_and_the_cell_ends_well(kernel: Kernel) -> None:
    kernel.execute("script(Step('Four, I think.'))", check=True)
    reply = kernel.execute("%%agent -o answer\nHow much is two and two?")
    assert (reply.status, reply.error) == ("ok", None)
    assert "Four, I think." in shown(reply)
    assert (
        kernel.execute("(answer.text, answer.status, answer.iterations)").text == "('Four, I think.', 'completed', 1)"
    )


def test_the_next_cell_continues_the_conversation_until_new(kernel: Kernel) -> None:
    kernel.execute("script('one', 'two', 'three')\nfrom zq_notebook.assembly import provider_for", check=True)
    kernel.execute("%%agent\nfirst", check=True)
    kernel.execute("%%agent\nsecond", check=True)
    kernel.execute("%%agent --new\nthird", check=True)
    requests = kernel.execute(
        "[[m['content'] for m in r.messages if m['role'] == 'user'] for r in provider_for('scripted').requests]"
    )
    assert requests.text == "[['first'], ['first', 'second'], ['third']]"


def test_two_sessions_do_not_share_a_conversation(kernel: Kernel) -> None:
    kernel.execute("script('one', 'two', 'three')", check=True)
    kernel.execute("%%agent -s a --new -m scripted\nin a", check=True)
    kernel.execute("%%agent -s b --new -m scripted\nin b", check=True)
    kernel.execute("%%agent -s a -m scripted\nagain in a", check=True)
    requests = kernel.execute(
        "[[m['content'] for m in r.messages if m['role'] == 'user'] for r in provider_for('scripted').requests]"
    )
    kernel.execute("%agent new default", check=True)
    assert requests.text == "[['in a'], ['in b'], ['in a', 'again in a']]"


def test_code_that_needs_approval_is_denied_when_nobody_is_there(kernel: Kernel) -> None:
    kernel.execute("script(Step(tool_calls=[('run_code', {'code': 'made = 1'})]), Step('I see.', expect='denied'))")
    reply = kernel.execute("%%agent\nmake something")
    assert reply.status == "ok"
    assert "nobody is here to answer" in shown(reply)
    assert kernel.execute("'made' in globals()").text == "False"


def test_allowed_code_runs_in_the_users_namespace_and_the_footer_says_so(kernel: Kernel) -> None:
    kernel.execute("%agent allow run_code", check=True)
    kernel.execute(
        "script(Step(tool_calls=[('run_code', {'code': 'made = [1, 2]\\nsum(made)'})]), Step('3', expect='3'))"
    )
    reply = kernel.execute("%%agent\nmake something")
    assert reply.status == "ok"
    assert "made" in shown(reply).splitlines()[-1]
    assert kernel.execute("made").text == "[1, 2]"


def test_a_mode_flag_holds_for_its_cell_only(kernel: Kernel) -> None:
    call = "Step(tool_calls=[('run_code', {'code': 'count = globals().get(\"count\", 0) + 1'})])"
    kernel.execute(f"script({call}, 'done', {call}, 'done')", check=True)
    kernel.execute("%%agent --mode auto\nrun it", check=True)
    kernel.execute("%%agent\nrun it again", check=True)
    assert kernel.execute("count").text == "1"
    assert "interactive" in kernel.execute("%agent status").stdout


def test_ask_is_the_same_from_code(kernel: Kernel) -> None:
    kernel.execute("import zq_notebook\nscript('from code')", check=True)
    reply = kernel.execute("r = await zq_notebook.ask('say something')\n(r.text, r.status)")
    assert reply.text == "('from code', 'completed')"
    assert "from code" in shown(reply)


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%%agent", "no task"),
        ("%%agent\n   \n", "no task"),
        ("%%agent --mode yolo\nx", "no mode 'yolo'"),
        ("%%agent -r chef\nx", "no role 'chef'"),
        ("%%agent --frob\nx", "no flag --frob"),
        ("%%agent -a nowhere.txt\nx", "does not exist"),
        ("%agent frob", "no %agent command 'frob'"),
        ("%agent mode", None),
        ("%agent model ''\n", None),
    ],
)
def test_bad_input_gets_one_paragraph_and_no_traceback(kernel: Kernel, cell: str, says: str | None) -> None:
    reply = kernel.execute(cell)
    if says is None:
        assert reply.status == "ok"
        return
    assert reply.status == "error"
    errors = [m["content"]["traceback"] for m in reply.messages if m["msg_type"] == "error"]
    assert len(errors) == 1
    assert len(errors[0]) == 1
    assert says in errors[0][0]
    assert "\n" not in errors[0][0]
    assert "File " not in errors[0][0]


def test_no_model_and_no_key_are_explained(kernel: Kernel) -> None:
    kernel.execute("%agent model ''", check=True)
    assert "OPENAI_MODEL" in str(kernel.execute("%%agent\nx").error)
    reply = kernel.execute("%%agent -m gpt-x\nx")
    assert "OPENAI_API_KEY is not set" in str(reply.error)
    assert sum("OPENAI_API_KEY is not set" in str(m["content"]) for m in reply.messages) == 1


def test_a_failed_turn_fails_the_cell_and_still_binds_its_result(kernel: Kernel) -> None:
    kernel.execute("script(Step('half', error=RuntimeError('the model broke')))", check=True)
    reply = kernel.execute("%%agent -o answer\nx")
    assert reply.error == ("TurnError", "the model broke")
    assert kernel.execute("(answer.status, answer.error)").text == "('error', 'the model broke')"
    kernel.execute("script('fine again')", check=True)
    assert "fine again" in shown(kernel.execute("%%agent -m scripted --new\nx"))


def test_help_and_completion_are_there(kernel: Kernel) -> None:
    assert "--max-iterations N" in kernel.execute("%agent help").stdout
    for code, expected in {
        "%agent mo": {"model", "mode"},
        "%agent mode pl": {"plan"},
        "%%agent --m": {"--model", "--mode", "--max-iterations"},
        "%%agent -r an": {"analyst"},
        "%%agent -m sc": {"scripted"},
        "%agent allow run_c": {"run_code"},
    }.items():
        reply = kernel.client.complete(code, reply=True, timeout=20)
        assert set(reply["content"]["matches"]) == expected, code


def test_the_same_script_leaves_the_same_bytes(kernel: Kernel) -> None:
    kernel.execute("table = [1, 2, 3]", check=True)
    runs = []
    for _ in range(2):
        kernel.execute("%agent new\n%agent allow run_code", check=True)
        kernel.execute(
            "script(Step('Looking.', tool_calls=[('list_variables', {}), ('run_code', {'code': 'print(sum(table))'})]),"
            " Step('**6**'))"
        )
        runs.append(kernel.execute("%%agent\nadd it up").displays)
    assert runs[0] == runs[1]
    assert len(runs[0]) >= 5


def test_loading_twice_and_unloading_leave_things_in_order(kernel: Kernel) -> None:
    kernel.execute("%reload_ext zq_notebook", check=True)
    kernel.execute("script('still here')", check=True)
    assert "still here" in shown(kernel.execute("%%agent -m scripted --new\nx"))


def test_policy_for_nobody_there_can_be_changed_between_cells(kernel: Kernel) -> None:
    kernel.execute("script(*[Step(tool_calls=[('run_code', {'code': 'done = 1'})]), 'ok'] * 2)", check=True)
    assert "Denied run_code" in shown(kernel.execute("%%agent\nfirst"))
    kernel.execute("%config AgentMagics.unattended = 'allow'", check=True)
    try:
        assert "Allowed run_code once: nobody is here to answer" in shown(kernel.execute("%%agent\nsecond"))
        assert kernel.execute("done").text == "1"
    finally:
        kernel.execute("%config AgentMagics.unattended = ''", check=True)


def test_a_restarted_kernel_knows_agent_cells_when_autoload_is_on(tmp_path) -> None:
    with running_kernel(env={"IPYTHONDIR": str(tmp_path)}) as kernel:
        kernel.execute("%load_ext zq_notebook", check=True)
        assert "autoload: on" in kernel.execute("%agent autoload on").stdout
    with running_kernel(env={"IPYTHONDIR": str(tmp_path)}) as kernel:
        assert "scripted demo model" in shown(kernel.execute("%%agent -m demo\nhello"))
        assert "autoload: off" in kernel.execute("%agent autoload off").stdout
    with running_kernel(env={"IPYTHONDIR": str(tmp_path)}) as kernel:
        error = kernel.execute("%%agent -m demo\nhello").error
        assert error is not None
        assert error[0] == "UsageError"


def test_approvals_are_typed_where_there_are_no_cells_to_draw_in(kernel: Kernel) -> None:
    code = "Step('I will run it.', tool_calls=[('run_code', {'code': 'typed = typed + 1'})])"
    kernel.execute(
        f"typed = 0\nscript({code}, {code}, Step('All right.', expect='Reason given: enough for now'))", check=True
    )
    reply = kernel.execute("%%agent\ngo", answers=("perhaps", "y", "n enough for now"))
    assert reply.status == "ok"
    assert "typed = typed + 1" in reply.stdout
    assert "'perhaps' is none of the answers" in reply.stdout
    assert "All right." in reply.stdout
    assert kernel.execute("typed").text == "1"


def test_questions_are_typed_too(kernel: Kernel) -> None:
    question = (
        "Step(tool_calls=[('ask_user', {'question': 'Which?', 'options': ['red', 'blue'], 'allow_text': False})])"
    )
    kernel.execute(f"script({question}, Step('Blue it is.', expect='blue'))", check=True)
    reply = kernel.execute("%%agent\ngo", answers=("green", "2"))
    assert "Which?" in reply.stdout
    assert "Blue it is." in reply.stdout


def test_the_kernels_stop_button_ends_a_typed_question(kernel: Kernel) -> None:
    kernel.execute("script(Step(tool_calls=[('run_code', {'code': 'typed = 99'})]), 'never')", check=True)
    run = kernel.start("%%agent\ngo", allow_stdin=True)
    kernel.client.get_stdin_msg(timeout=30)
    kernel.interrupt()
    reply = run.finish()
    assert reply.status == "ok"
    assert "interrupted" in reply.stdout
    assert kernel.execute("typed").text == "1"


def test_the_kernels_stop_button_ends_an_unattended_turn(kernel: Kernel) -> None:
    kernel.execute("script(Step('word ' * 5000, delay=0.02), 'never')", check=True)
    run = kernel.start("%%agent -o r\ngo")
    run.wait_for_message(lambda m: m["msg_type"] == "display_data")
    kernel.interrupt()
    assert run.finish().status == "ok"
    assert kernel.execute("r.status").text == "'interrupted'"


def test_a_request_that_has_ended_does_not_take_the_place_of_the_next_one(kernel: Kernel) -> None:
    kernel.execute("kernel = get_ipython().kernel\nold = kernel.get_parent()", check=True)
    # What ipykernel does when a widget message that came during the first cell is handled only now.
    restore = (
        "def shell_main(): kernel.set_parent([], old, channel='shell')\nshell_main()\nold is not kernel.get_parent()"
    )
    assert kernel.execute(restore).text == "True"


def test_what_was_allowed_is_just_that_and_can_be_taken_back(kernel: Kernel) -> None:
    shell = "Step(tool_calls=[('run_shell', {'command': %r})])"
    kernel.execute("%agent allow run_shell git status", check=True)
    kernel.execute(f"script({shell % 'git push --force'}, 'done', {shell % 'git status'}, 'done')", check=True)
    assert "nobody is here" in shown(kernel.execute("%%agent\ngo"))
    assert "nobody is here" not in shown(kernel.execute("%%agent\ngo"))
    assert "asked for again" in kernel.execute("%agent disallow run_shell git status").stdout
    kernel.execute(f"script({shell % 'git status'}, 'done')", check=True)
    assert "nobody is here" in shown(kernel.execute("%%agent\ngo"))
    assert "nothing to take back" in str(kernel.execute("%agent disallow run_code").error)


def test_a_task_behind_agent_is_sent_to_the_cell(kernel: Kernel) -> None:
    assert "write %%agent on the first line" in str(kernel.execute("%agent summarise the orders").error)
