"""What turns leave behind: nothing that grows, nothing of the user's changed, nothing shared between conversations."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.integration.kernel import Kernel
from tests.integration.scripted_kernel import scripted_kernel, shown

LIGHT_MODEL = """
import gc, threading, weakref
from zq_notebook import StreamChunk, ToolCall
class Light:
    asked = 0
    async def stream(self, model, messages, tools, opts):
        self.asked += 1
        yield StreamChunk(content="hello " * 50)
        calls = [ToolCall(f"a{self.asked}", "run_code", '{"code": "print(1)"}'),
                 ToolCall(f"b{self.asked}", "run_shell", '{"command": "echo hi"}')]
        if self.asked % 2:
            yield StreamChunk(tool_calls=calls, finish_reason="tool_calls")
        else:
            yield StreamChunk(content="done", finish_reason="stop")
register_model("light", Light())
def counts():
    gc.collect()
    return threading.active_count(), len(os.listdir("/proc/self/fd")), len(gc.get_objects())
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with scripted_kernel() as kernel:
        kernel.execute(LIGHT_MODEL, check=True)
        yield kernel


def test_threads_files_and_objects_do_not_grow_with_the_turns(kernel: Kernel) -> None:
    def turns(number: int) -> tuple[int, int, int]:
        for _ in range(number):
            kernel.execute("%%agent -m light --mode auto\ngo", check=True)
        counted: tuple[int, int, int] = ast.literal_eval(kernel.execute("counts()").text)
        return counted

    turns(10)  # everything that is loaded late is loaded by now
    threads, files, objects = turns(5)
    later_threads, later_files, later_objects = turns(25)
    assert later_threads <= threads + 1
    assert later_files <= files + 3
    assert later_objects - objects < 25 * 100  # a turn of two iterations adds about twenty


def test_a_conversation_that_is_forgotten_is_not_kept_in_memory(kernel: Kernel) -> None:
    kernel.execute("%%agent -m light --mode auto\ngo", check=True)
    kernel.execute(
        "service = get_ipython().magics_manager.registry['AgentMagics'].service\n"
        "engine = weakref.ref(service.current.engine)\n%agent new",
        check=True,
    )
    kernel.execute("%agent new", check=True)
    assert kernel.execute("gc.collect()\nengine() is None").text == "True"


def test_history_and_results_are_the_users_alone(kernel: Kernel) -> None:
    kernel.execute("script(Step(tool_calls=[('run_code', {'code': '98765'})] * 2), 'fine')", check=True)
    kernel.execute("'mine'", check=True)
    kernel.execute("%%agent -m scripted --mode auto\ngo", check=True)
    assert kernel.execute("_, 98765 in Out.values(), len(In) - get_ipython().execution_count").text == (
        "('mine', False, 0)"
    )


def test_a_figure_that_the_user_is_drawing_is_drawn_to_its_end(kernel: Kernel) -> None:
    kernel.execute("%matplotlib inline\nimport matplotlib.pyplot as plt, zq_notebook", check=True)
    kernel.execute(
        "drawing = 'plt.figure(); plt.plot([1, 2]); plt.close(\"all\")'\n"
        "script(Step(tool_calls=[('run_code', {'code': drawing})]), 'fine')",
        check=True,
    )
    reply = kernel.execute(
        "figure, axes = plt.subplots(); axes.plot([3, 4])\n"
        "await zq_notebook.ask('go', model='scripted', mode='auto')\n"
        "axes.plot([5, 6]); print(len(axes.lines), plt.get_fignums() == [figure.number])"
    )
    assert reply.stdout == "2 True\n"
    assert "image/png" in reply.displays[-1]


def test_allowances_belong_to_one_conversation_and_end_with_it(kernel: Kernel) -> None:
    call = "Step(tool_calls=[('run_code', {'code': 'allowed = globals().get(\"allowed\", 0) + 1'})]), 'ok'"
    kernel.execute("%agent new one\n%agent model scripted\n%agent allow run_code", check=True)
    kernel.execute(f"script({call}, {call}, {call})", check=True)
    assert "Denied" not in shown(kernel.execute("%%agent -s one\ngo"))
    assert "Denied" in shown(kernel.execute("%%agent -s two -m scripted\ngo"))
    kernel.execute("%agent new one", check=True)
    assert "Denied" in shown(kernel.execute("%%agent\ngo"))
    assert kernel.execute("allowed").text == "1"


@pytest.mark.parametrize("ending", ["'ok'", "Step(error=RuntimeError('broke'))", "Step('', finish_reason='')"])
def test_a_mode_for_one_cell_ends_with_it_however_it_ends(kernel: Kernel, ending: str) -> None:
    kernel.execute("%agent new default\n%agent model scripted\nos.environ['NETWORK_RETRY_MAX'] = '0'", check=True)
    kernel.execute(f"leaked = 0\nscript({ending}, Step(tool_calls=[('run_code', {{'code': 'leaked = 1'}})]), 'ok')")
    kernel.execute("%%agent --mode auto\ngo")
    assert "Denied" in shown(kernel.execute("%%agent\ngo"))
    assert kernel.execute("leaked").text == "0"


def test_the_workspace_of_a_new_conversation_is_where_the_kernel_is_now(kernel: Kernel) -> None:
    kernel.execute("script('one', 'two')\nos.makedirs('deeper', exist_ok=True)", check=True)
    kernel.execute("%%agent --new -m scripted\ngo", check=True)
    kernel.execute("os.chdir('deeper')\nopen('here.txt', 'w').write('found')", check=True)
    assert not kernel.execute("%agent status").stdout.split("workspace")[1].split()[0].endswith("deeper")
    kernel.execute("%%agent --new -m scripted -a here.txt\ngo", check=True)
    assert kernel.execute("%agent status").stdout.split("workspace")[1].split()[0].endswith("deeper")
    assert "found" in kernel.execute("asked()[-1].messages[-1]['content']").text
