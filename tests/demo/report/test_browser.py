"""The page in a real browser."""

import pytest

from pictopic.demo.report import write_report
from tests.support.browser import chromium, needs_chromium
from tests.support.report import HOSTILE, LONG, made_report

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Pages with usual, hostile and long names."""
    folder = tmp_path_factory.mktemp("pages")
    for name, text in {"usual": "coast", "hostile": HOSTILE, "long": LONG}.items():
        write_report(folder / f"{name}.html", made_report(text))
    return {name: (folder / f"{name}.html").as_uri() for name in ("usual", "hostile", "long")}


@pytest.fixture
def open_page(browser):
    """Opens a page; what goes wrong in it ends in its list `troubles`."""
    opened = []

    def open_it(address, width=1280, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
        page.troubles = []
        page.on("console", lambda message: page.troubles.append(message.text))
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("dialog", lambda dialog: page.troubles.append(dialog.message))
        page.on(
            "request", lambda request: request.url.startswith(("file:", "data:")) or page.troubles.append(request.url)
        )
        page.goto(address)
        opened.append(page)
        return page

    yield open_it
    for page in opened:
        page.close()


@pytest.mark.parametrize("name", ["usual", "hostile", "long"])
def test_page_opens_without_errors_or_requests(open_page, files, name):
    page = open_page(files[name])
    page.wait_for_timeout(100)
    assert page.troubles == []
    assert page.locator("h2").count() == 8


@pytest.mark.parametrize("name", ["usual", "long"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_page_is_not_wider_than_the_window(open_page, files, name, width):
    page = open_page(files[name], width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # What is wider scrolls inside of its own box.
    right = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.card, h1, h2, pre')].map(e => e.getBoundingClientRect().right))"
    )
    assert right <= width


def test_all_pictures_are_shown_and_described(open_page, files):
    images = open_page(files["usual"]).evaluate("[...document.images].map(image => [image.alt, image.naturalWidth])")
    assert images
    assert all(alt and width > 0 for alt, width in images)


def test_page_follows_light_and_dark(open_page, files):
    def brightness(scheme):
        page = open_page(files["usual"], scheme=scheme)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgb()").split(","))

    assert brightness("light") > 600
    assert brightness("dark") < 150


def test_pictures_behind_a_number_open_and_close_by_keyboard(open_page, files):
    page = open_page(files["usual"], 390)
    examples = page.locator("#cell-0-1")
    assert not examples.is_visible()
    page.get_by_role("button", name="1 of coast taken for forest: show pictures").focus()
    page.keyboard.press("Enter")
    assert examples.is_visible()
    assert examples.locator("img").first.is_visible()
    page.keyboard.press("Escape")
    assert not examples.is_visible()


def test_charts_have_names_for_those_who_do_not_see_them(open_page, files):
    page = open_page(files["usual"])
    assert page.get_by_role("img", name="coast; training: from 2 to 1 in 2 passes").count() == 1


def test_links_lead_to_the_sections(open_page, files):
    page = open_page(files["usual"])
    page.get_by_role("link", name="Your own pictures").click()
    page.wait_for_timeout(600)
    assert page.locator("#next").evaluate("e => e.getBoundingClientRect().top") < 844
