"""Input that cannot be carried out: one clear paragraph, no traceback, and the kernel goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.kernel import Kernel
from tests.integration.scripted_kernel import complaint, scripted_kernel, shown


@pytest.fixture(scope="module")
def shared_kernel() -> Iterator[Kernel]:
    with scripted_kernel() as kernel:
        yield kernel


@pytest.fixture
def kernel(shared_kernel: Kernel) -> Kernel:
    shared_kernel.execute("%agent new default\n%agent model scripted\n%agent mode interactive", check=True)
    shared_kernel.execute("script('fine')", check=True)
    return shared_kernel


@pytest.mark.parametrize("name", ["class", "None", "print", "get_ipython", "In", "Out", "_", "__name__", "_1", "a.b"])
def test_a_result_is_bound_to_no_name_that_python_or_ipython_needs(kernel: Kernel, name: str) -> None:
    assert complaint(kernel.execute(f"%%agent -o {name}\nx")).startswith("UsageError: -o")
    assert kernel.execute("print('alive'); 5").text == "5"


def test_a_result_is_found_under_a_name_that_python_spells_differently(kernel: Kernel) -> None:
    assert kernel.execute("%%agent -o \U0001d499\nx").status == "ok"
    assert kernel.execute("\U0001d499.text, x.text").text == "('fine', 'fine')"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("loop", "cannot be read"),
        ("~nobody-of-this-name/x", "cannot be read"),
        ("n" * 5000, "cannot be read"),
        ("/proc/self/mem", "cannot be read"),
        ("/dev/zero", "not a regular file"),
        ("fifo", "not a regular file"),
        ("empty.png", "is empty"),
    ],
)
def test_an_attachment_that_cannot_be_read_is_explained(kernel: Kernel, name: str, says: str) -> None:
    kernel.execute(
        "os.path.islink('loop') or os.symlink('loop', 'loop')\nos.path.exists('fifo') or os.mkfifo('fifo')\n"
        "open('empty.png', 'w').close()",
        check=True,
    )
    said = complaint(kernel.execute(f"%%agent -a {name}\nx"))
    assert said.startswith("AttachmentError")
    assert says in said
    assert len(said) < 500


def test_a_model_that_is_set_after_the_first_complaint_is_used(kernel: Kernel) -> None:
    kernel.execute("%agent model ''\nos.environ.pop('OPENAI_MODEL', None)", check=True)
    assert "OPENAI_MODEL" in complaint(kernel.execute("%%agent\nx"))
    kernel.execute("os.environ['OPENAI_MODEL'] = 'scripted'", check=True)
    assert "fine" in shown(kernel.execute("%%agent\nx"))
    kernel.execute("del os.environ['OPENAI_MODEL']\n%config AgentMagics.model = 'scripted'\nscript('too')", check=True)
    assert "too" in shown(kernel.execute("%%agent\nx"))
    kernel.execute("%config AgentMagics.model = ''", check=True)


def test_a_nonsense_variable_is_named_and_can_be_overridden_from_the_notebook(kernel: Kernel) -> None:
    kernel.execute("os.environ['ZQ_MODE'] = 'yolo'; os.environ['ZQ_ROLE'] = 'chef'\n%agent new odd", check=True)
    try:
        said = complaint(kernel.execute("%%agent\nx"))
        assert "ZQ_ROLE" in said
        kernel.execute("%agent role code", check=True)
        assert "ZQ_MODE" in complaint(kernel.execute("%%agent\nx"))
        kernel.execute("%agent mode plan", check=True)
        assert "code · scripted · reads" in shown(kernel.execute("%%agent\nx"))
    finally:
        kernel.execute("del os.environ['ZQ_MODE'], os.environ['ZQ_ROLE']", check=True)


def test_a_failed_cell_does_not_change_the_conversation(kernel: Kernel) -> None:
    kernel.execute("script('one', 'two')", check=True)
    kernel.execute("%%agent\nfirst", check=True)
    complaint(kernel.execute("%%agent -s other -r chef\nx"))
    complaint(kernel.execute("%%agent --new -a nowhere\nx"))
    kernel.execute("%%agent\nsecond", check=True)
    said = kernel.execute("[m['content'] for m in asked()[-1].messages if m['role'] == 'user']")
    assert said.text == "['first', 'second']"


def test_a_new_conversation_has_the_model_and_not_the_mode_of_the_one_before(kernel: Kernel) -> None:
    kernel.execute("%agent mode auto", check=True)
    kernel.execute("%agent new aside", check=True)
    status = kernel.execute("%agent status").stdout
    assert "scripted" in status
    assert "interactive" in status
    kernel.execute("%agent new default\n%agent mode interactive", check=True)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ("None", "no provider"),
        ("42", "no provider"),
        ("lambda: None", "no provider"),
        ("lambda: 1 / 0", "could not be made (ZeroDivisionError"),
    ],
)
def test_what_is_registered_as_a_model_and_is_none_is_explained(kernel: Kernel, made: str, says: str) -> None:
    kernel.execute(f"register_model('broken', {made})", check=True)
    if made == "None":
        return  # takes a registration back
    assert says in complaint(kernel.execute("%%agent -m broken --new\nx"))


@pytest.mark.parametrize("raised", ["KeyboardInterrupt()", "SystemExit(3)", "GeneratorExit()"])
def test_a_provider_that_tries_to_end_the_program_ends_its_turn_only(kernel: Kernel, raised: str) -> None:
    kernel.execute(
        f"class Quitter:\n    async def stream(self, *args):\n        raise {raised}\n        yield\n"
        "register_model('quitter', Quitter())",
        check=True,
    )
    said = complaint(kernel.execute("%%agent -m quitter --new\nx"))
    assert raised.partition("(")[0] in said
    assert "fine" in shown(kernel.execute("%%agent --new\nx"))


def test_an_error_of_many_lines_becomes_one_paragraph(kernel: Kernel) -> None:
    kernel.execute("script(Step(error=RuntimeError('one\\n\\x1b[31mtwo\\x1b[0m\\n  ' + 'x' * 100_000)))", check=True)
    said = complaint(kernel.execute("%%agent\nx"))
    assert said.startswith("RuntimeError: one two xxx")
    assert len(said) < 2_500


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:99999/v1", "http://[::1/v1", "ftp://example.org", "http://one two/v1", "nonsense"]
)
def test_an_address_that_cannot_be_one_is_named_by_its_variable(kernel: Kernel, url: str) -> None:
    kernel.execute(f"os.environ.update(OPENAI_BASE_URL={url!r}, OPENAI_API_KEY='sk-0123456789abcdefghij')", check=True)
    try:
        assert "OPENAI_BASE_URL" in complaint(kernel.execute("%%agent -m gpt-5 --new\nx"))
        report = kernel.execute("%agent model gpt-5\n%agent doctor")
        assert report.status == "ok"
        assert "OPENAI_BASE_URL" in report.stdout
    finally:
        kernel.execute("del os.environ['OPENAI_BASE_URL'], os.environ['OPENAI_API_KEY']", check=True)


def test_a_server_without_tls_is_recognised(kernel: Kernel) -> None:
    kernel.execute(
        "import threading, http.server\n"
        "class Quiet(http.server.BaseHTTPRequestHandler):\n    log_message = lambda *args: None\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Quiet)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "os.environ.update(OPENAI_BASE_URL=f'https://127.0.0.1:{server.server_port}/v1', NETWORK_RETRY_MAX='0')",
        check=True,
    )
    try:
        assert "does not speak TLS" in complaint(kernel.execute("%%agent -m gpt-5 --new\nx"))
    finally:
        kernel.execute("del os.environ['OPENAI_BASE_URL']; server.shutdown()", check=True)


def test_a_working_directory_that_is_gone_is_explained_and_another_one_is_taken(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with scripted_kernel(cwd=str(gone)) as kernel:
        shutil.rmtree(gone)
        kernel.execute("script('fine')", check=True)
        assert "%cd FOLDER" in complaint(kernel.execute("%%agent -m scripted\nx"))
        kernel.execute(f"os.chdir({str(tmp_path)!r})", check=True)
        assert "fine" in shown(kernel.execute("%%agent -m scripted\nx"))


@pytest.mark.parametrize("folder", ["/nowhere/at/all", "/etc/passwd", "~nobody-of-this-name/x"])
def test_a_workspace_that_is_none_is_explained(kernel: Kernel, folder: str) -> None:
    kernel.execute(f"%config AgentMagics.workspace = {folder!r}\n%agent new aside2", check=True)
    try:
        assert "%config AgentMagics.workspace" in complaint(kernel.execute("%%agent -m scripted\nx"))
    finally:
        kernel.execute("%config AgentMagics.workspace = ''", check=True)
    assert "fine" in shown(kernel.execute("%%agent -m scripted\nx"))


def test_nobody_there_and_the_policy_error_says_what_to_do(kernel: Kernel) -> None:
    kernel.execute("script(Step(tool_calls=[('run_code', {'code': 'ran = 1'})]))", check=True)
    kernel.execute("%config AgentMagics.unattended = 'error'", check=True)
    try:
        reply = kernel.execute("%%agent -o outcome\nx")
        assert "%agent allow run_code" in complaint(reply)
        assert reply.error is not None
        assert reply.error[0] == "ApproverMissingError"
        assert kernel.execute("outcome.status, 'ran' in globals()").text == "('error', False)"
    finally:
        kernel.execute("%config AgentMagics.unattended = ''", check=True)
