"""zq_notebook: an AI agent that lives inside your Jupyter kernel."""
