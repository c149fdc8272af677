"""Files given with ``-a``."""

import base64
from pathlib import Path

import pytest

from zq_notebook.errors import AttachmentError
from zq_notebook.notebook.attach import MAX_ATTACHMENT_BYTES, read_attachments

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_a_picture_goes_along_as_a_data_url_and_is_referred_to_without_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PIXEL)
    attached = read_attachments(["shot.png"], tmp_path)
    assert attached.attachments == [
        {
            "name": "shot.png",
            "mimeType": "image/png",
            "dataUrl": f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}",
        }
    ]
    assert attached.refs[0]["size"] == len(PIXEL)
    assert "dataUrl" not in attached.refs[0]


@pytest.mark.parametrize("name", ["shot.dat", "shot.txt", "shot.jpg", "SHOT"])
def test_a_picture_is_known_by_its_content_whatever_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(PIXEL)
    assert read_attachments([name], tmp_path).attachments[0]["mimeType"] == "image/png"


def test_text_is_quoted_behind_the_prompt_in_a_fence_that_it_cannot_close(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("a\n```\nb", encoding="utf-8")
    attached = read_attachments([str(tmp_path / "notes.md")], tmp_path)
    assert attached.attachments == []
    assert "Attached file notes.md:\n````\na\n```\nb\n````" in attached.text


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: None, "does not exist"),
        (lambda p: p.mkdir(), "not a regular file"),
        (lambda p: p.touch(), "is empty"),
        (lambda p: p.symlink_to(p), "cannot be read"),
        (lambda p: p.write_bytes(b"\x00\x01\x02"), "neither a picture"),
        (lambda p: p.write_bytes(b"\xff\xfe\xfa"), "neither a picture"),
        (lambda p: p.write_bytes(b"x" * (MAX_ATTACHMENT_BYTES + 1)), "is the limit"),
        (lambda p: p.write_text("x" * 200_001), "is the limit for text"),
    ],
)
def test_an_attachment_that_cannot_be_used_is_explained(tmp_path: Path, make, says: str) -> None:
    path = tmp_path / "thing.dat"
    make(path)
    with pytest.raises(AttachmentError, match=says):
        read_attachments(["thing.dat"], tmp_path)


def test_more_than_four_attachments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AttachmentError, match="4 is the limit"):
        read_attachments(["a", "b", "c", "d", "e"], tmp_path)


def test_attachments_that_are_too_big_together_are_refused(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"x" * (MAX_ATTACHMENT_BYTES // 2 + 1))
    with pytest.raises(AttachmentError, match="together"):
        read_attachments(["a.png", "b.png"], tmp_path)
