"""``%%agent`` is awaited, everything else stays as it is."""

from IPython.core.inputtransformer2 import TransformerManager

from zq_notebook.notebook.await_cell import await_agent_cell


def transform(cell: str) -> str:
    manager = TransformerManager()
    return "".join(await_agent_cell(manager.transform_cell(cell).splitlines(keepends=True)))


def test_an_agent_cell_is_awaited() -> None:
    assert (
        transform("%%agent -m demo\nhello\n") == "await get_ipython().run_cell_magic('agent', '-m demo', 'hello\\n')\n"
    )


def test_other_cells_are_left_alone() -> None:
    for cell in ("x = 1\n", "%%time\n1\n", "print('%%agent')\n", "%agent status\n", "# %%agent\n1\n", "%%agents\n1\n"):
        assert "await" not in transform(cell)


def test_an_empty_body_reaches_the_magic_which_knows_what_to_say() -> None:
    assert transform("%%agent") == "await get_ipython().run_cell_magic('agent', '', '\\n')\n"
    assert transform("%%agent -m ''\n") == "await get_ipython().run_cell_magic('agent', \"-m ''\", '\\n')\n"
