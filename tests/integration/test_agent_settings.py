"""Where defaults come from: traitlets, then the environment, then built-in."""

from pathlib import Path

from tests.integration.kernel import running_kernel


def test_traitlets_and_environment_set_the_defaults(tmp_path: Path) -> None:
    profile = tmp_path / "profile_default"
    profile.mkdir()
    (profile / "ipython_config.py").write_text(
        "c = get_config()\n"
        "c.AgentMagics.mode = 'plan'\n"
        "c.AgentMagics.allowed_commands = ['git status']\n"
        "c.InteractiveShellApp.extensions = ['zq_notebook']\n"
    )
    environment = {"IPYTHONDIR": str(tmp_path), "ZQ_ROLE": "cowork", "OPENAI_MODEL": "gpt-a", "ZQ_MODE": "auto"}
    with running_kernel(env=environment) as kernel:
        status = kernel.execute("%agent status").stdout
        for line in ("gpt-a", "cowork", "plan (reads only", "git status"):
            assert line in status
        assert "Model; when empty ZQ_MODEL" in kernel.execute("%config AgentMagics").stdout
        kernel.execute("%config AgentMagics.model = 'gpt-b'", check=True)
        assert "gpt-b" in kernel.execute("%agent new other\n%agent status").stdout


def test_agent_explains_itself() -> None:
    with running_kernel() as kernel:
        kernel.execute("%load_ext zq_notebook", check=True)
        for code, expected in {"%%agent": "--max-iterations N", "%agent": "doctor"}.items():
            payload = kernel.client.execute(f"{code}?", reply=True, timeout=20)["content"]["payload"]
            assert expected in payload[0]["data"]["text/plain"]


def test_doctor_says_what_is_missing_and_how_to_mend_it() -> None:
    with running_kernel(env={"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}) as kernel:
        kernel.execute("%load_ext zq_notebook\n%agent model gpt-a", check=True)
        report = kernel.execute("%agent doctor").stdout
    lines = report.splitlines()
    assert any(line.startswith("ok") and "model" in line and "gpt-a" in line for line in lines)
    assert any(line.startswith("missing") and "model server" in line and "cannot be reached" in line for line in lines)
    assert "a server on this machine usually needs none" in report
    for name in ("ipykernel", "jupyterlab", "widgets", "git", "ripgrep", "sandbox", "local server"):
        assert name in report
