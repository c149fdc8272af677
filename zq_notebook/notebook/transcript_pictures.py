"""Pictures of a transcript as addresses that hold the whole picture."""

from __future__ import annotations

import base64

from zq_notebook.notebook.rich_output import IMAGE_TYPES
from zq_notebook.toolio import ImageData

# A larger picture would make the notebook, and each message to the browser, unwieldy.
MAX_IMAGE_BYTES = 4_000_000


def image_source(image: ImageData) -> str | None:
    """A data URI, or ``None`` when the picture is too big or not of a kind that browsers show safely."""
    if len(image.data) > MAX_IMAGE_BYTES or image.mime_type not in IMAGE_TYPES:
        return None
    return f"data:{image.mime_type};base64,{base64.b64encode(image.data).decode()}"
