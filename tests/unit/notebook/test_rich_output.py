"""Which displays a card may hold."""

from __future__ import annotations

import base64
import io

import pytest

from zq_notebook.notebook.rich_output import bounded_image, fits_card, image_bytes, is_passive_html, readable

pd = pytest.importorskip("pandas")


def test_table_of_pandas_fits() -> None:
    assert is_passive_html(pd.DataFrame({"a": range(200), "b": "x"})._repr_html_())


@pytest.mark.parametrize(
    "html",
    [
        "<script>1</script>",
        "<b onclick='x()'>a</b>",
        "<img src='http://x/y.png'>",
        "<iframe src='x'></iframe>",
        "<a href='javascript:x()'>a</a>",
        "<div style='position:fixed'>a</div>",
        "<div style='background:url(http://x)'>a</div>",
        "<style>body { display: none }</style>",
        "<style>.dataframe td { background: url(x) } @import 'y';</style>",
        "<svg></svg>",
        "<form><input></form>",
        "<!-- a --><b>c</b>",
        "<details>a</details>",
        "x" * 300_000,
    ],
)
def test_html_that_does_more_than_show_text_goes_to_the_cell(html: str) -> None:
    assert not fits_card({"text/html": html, "text/plain": "x"})


@pytest.mark.parametrize(
    ("bundle", "fits"),
    [
        ({"text/plain": "x"}, True),
        ({"text/html": "<b>x</b>"}, True),
        ({"image/png": b"x", "text/plain": "Figure"}, True),
        ({"image/svg+xml": "<svg/>"}, False),
        ({"text/latex": "$x$"}, False),
        ({"application/vnd.jupyter.widget-view+json": {}, "text/plain": "W"}, False),
        ({"image/png": b"x", "application/vnd.plotly.v1+json": {}}, False),
    ],
)
def test_bundles(bundle: dict[str, object], fits: bool) -> None:
    assert fits_card(bundle) is fits


def test_name_of_an_object_is_replaced_by_its_words() -> None:
    html = "<style>b{}</style><p>Total <b>5</b></p>"
    assert readable({"text/plain": "<IPython.core.display.HTML object>", "text/html": html}) == "Total 5"
    assert readable({"text/plain": "   a\n0  1", "text/html": html}) == "   a\n0  1"


def test_images_come_as_bytes_or_base64() -> None:
    assert image_bytes(b"ab") == b"ab"
    assert image_bytes(base64.b64encode(b"ab").decode()) == b"ab"
    assert image_bytes(5) is None


def test_image_that_is_too_large_is_made_smaller_and_an_unreadable_one_left_out() -> None:
    images = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    images.new("RGB", (4_000, 100)).save(buffer, "PNG")
    smaller = bounded_image(buffer.getvalue(), "image/png", "wide")
    assert smaller is not None
    with images.open(io.BytesIO(smaller.data)) as picture:
        assert picture.size == (2_048, 51)
    assert bounded_image(b"no image" * 1_000_000, "image/png", "") is None
