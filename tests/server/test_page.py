"""The explorer in a real browser, over a real server."""

import base64
import shutil
from pathlib import Path

import httpx
import pytest
from PIL import Image

from pictopic import PictureModel
from pictopic.server.routers.service import PAGE
from tests.server.conftest import QUICK, picture, running
from tests.support.browser import chromium, needs_chromium

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
pytestmark = [needs_chromium, pytest.mark.slow]

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
MODES = {"desktop": (1280, "light"), "dark": (1280, "dark"), "phone": (320, "light")}
VIEWS = {
    "look": "#/look", "picture": "#/look/{id}", "search": "#/search", "found": "#/search?tags={tag}",
    "map": "#/topics", "classes": "#/topics/classes", "topics": "#/topics/list", "tags": "#/tags",
    "tag": "#/tags/{tag}", "review": "#/tags/{tag}/missing", "quality": "#/quality",
}  # fmt: skip


@pytest.fixture(scope="module")
def own_folder(folder, tmp_path_factory):
    """Of a model beside which decisions may be written."""
    return shutil.copytree(folder, tmp_path_factory.mktemp("page") / "model")


@pytest.fixture(scope="module")
def site(own_folder, scenes):
    with running(own_folder, pictures=scenes) as address:
        yield address


@pytest.fixture(scope="module")
def ask(site):
    """Asks the API without a browser."""
    with httpx.Client(base_url=f"{site}/api/v1/", timeout=60) as client:
        yield lambda path, **parameters: client.get(path, params=parameters).raise_for_status().json()


@pytest.fixture(scope="module")
def names(ask):
    """A picture and a tag to open views with."""
    return {"id": ask("pictures", offset=40, limit=1)["pictures"][0]["id"], "tag": ask("tags")["tags"][2]["name"]}


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def open_view(browser, site):
    """Opens a view; what goes wrong in it ends in its list `troubles`."""
    contexts = []

    def open_it(place, mode="desktop", address=site):
        width, scheme = MODES[mode]
        is_phone = mode == "phone"
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, has_touch=is_phone, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.troubles = []
        page.on("console", lambda message: page.troubles.append(message.text))
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on(
            "request",
            lambda request: request.url.startswith((address, "blob:", "data:")) or page.troubles.append(request.url),
        )
        page.goto(f"{address}/{place}")
        return page

    yield open_it
    for context in contexts:
        context.close()


def settle(page):
    """Wait until nothing is loading any more."""
    page.locator("h1").first.wait_for()
    page.locator(".waiting").first.wait_for(state="detached")
    page.wait_for_load_state("networkidle")


def a_picture(size=(64, 48), kind="JPEG"):
    return {"name": f"mine.{kind.lower()}", "mimeType": f"image/{kind.lower()}", "buffer": picture(1, kind, size)}


def bars(page, label):
    return page.get_by_role("list", name=label, exact=True).get_by_role("button")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("view", VIEWS)
def test_view_opens_without_errors_and_is_accessible(open_view, names, view, mode):
    page = open_view(VIEWS[view].format(**names), mode)
    settle(page)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{view}-{mode}.png")
    assert page.troubles == []
    assert page.locator(".trouble").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= MODES[mode][0]
    found = axe.Axe().run(page).response["violations"]
    assert [(own["id"], own["nodes"][0]["html"]) for own in found if own["impact"] in ("serious", "critical")] == []


def test_a_collection_of_tags_only_is_shown_without_errors(open_view, scenes, tmp_path):
    model = PictureModel(**QUICK).fit(scenes / "metadata.csv", folder=tmp_path / "corpus", pictures="none")
    model.save(tmp_path / "model")
    with running(tmp_path / "model") as address:
        found = httpx.get(f"{address}/api/v1/pictures", params={"limit": 1}).json()["pictures"][0]
        page = open_view("", address=address)
        for view in sorted(VIEWS.keys() - {"review"}):
            place = VIEWS[view].format(id=found["id"], tag=found["tags"][0])
            page.evaluate("place => { location.hash = place; }", place)
            settle(page)
        page.get_by_role("link", name="Look").click()
        page.get_by_role("heading", name="A collection without pictures").wait_for()
    assert page.troubles == []


@pytest.mark.parametrize("mode", ["desktop", "phone"])
def test_pictures_with_neither_tags_nor_classes_are_shown_without_errors(open_view, scenes, tmp_path, mode):
    photos = tmp_path / "photos"
    photos.mkdir()
    for path in sorted(scenes.rglob("*.jpg")):
        shutil.copy(path, photos / path.name)
    PictureModel(**QUICK).fit(photos, tags_column=None).save(tmp_path / "model")
    with running(tmp_path / "model") as address:
        found = httpx.get(f"{address}/api/v1/pictures", params={"limit": 1}).json()["pictures"][0]
        assert (found["tags"], found["labels"]) == ([], None)
        page = open_view("", mode, address=address)
        for view in ("picture", "search", "map", "tags", "quality", "topics"):
            page.evaluate("place => { location.hash = place; }", VIEWS[view].format(id=found["id"]))
            settle(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= MODES[mode][0]
            if view == "quality":
                page.get_by_text("equally likely words to choose from").wait_for()
        card = page.locator(".card").first
        assert card.locator(".words img").count() == 4
        assert card.locator(".tile img").count() == 5
        assert card.locator("img").first.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    assert page.troubles == []


def test_each_view_has_a_title_of_its_own(open_view, names):
    page = open_view("")
    titles = set()
    for place in VIEWS.values():
        page.evaluate("place => { location.hash = place; }", place.format(**names))
        settle(page)
        titles.add(page.title())
    assert len(titles) == len(VIEWS)


# ---- look ----


def test_look_says_what_the_api_says_of_a_chosen_picture(open_view, site):
    page = open_view("")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a picture").click()
    chooser.value.set_files(a_picture())
    bars(page, "Tags").first.wait_for()
    sent = {"picture": ("mine.jpeg", a_picture()["buffer"])}
    said = httpx.post(f"{site}/api/v1/look", params={"k": 8, "similar": 24}, files=sent, timeout=60).json()
    assert bars(page, "Tags").locator(".what").all_text_contents() == [
        own["name"] + (", sure" if own["is_sure"] else "")
        for own in sorted(said["tags"], key=lambda own: -own["probability"])
    ]
    assert bars(page, "Classes").first.locator(".what").inner_text() == said["classes"][0]["name"]
    assert page.get_by_role("list", name="Similar pictures").get_by_role("img").count() == len(said["similar"]) > 0
    assert page.title().startswith("mine.jpeg")
    assert page.troubles == []


@pytest.mark.parametrize("way", ["paste", "drop"])
def test_look_takes_what_is_pasted_or_dropped(open_view, way):
    page = open_view("")
    page.get_by_text("Drop a picture here").wait_for()
    page.evaluate(
        """([way, text]) => {
            const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
            const data = new DataTransfer();
            data.items.add(new File([bytes], "mine.jpg", { type: "image/jpeg" }));
            const event = way === "paste" ? new ClipboardEvent(way, { clipboardData: data, bubbles: true })
              : new DragEvent(way, { dataTransfer: data, bubbles: true, cancelable: true });
            document.body.dispatchEvent(event);
        }""",
        [way, base64.b64encode(picture(2)).decode()],
    )
    bars(page, "Tags").first.wait_for()
    assert "#/look/yours" in page.url


@pytest.mark.parametrize("place", ["#/look/{id}", ""])
def test_look_shows_which_parts_spoke_for_a_tag(open_view, names, place):
    page = open_view(place.format(**names))
    if not place:
        page.locator("input[type=file]").first.set_input_files(a_picture())
    bars(page, "Tags").nth(1).hover()
    overlay = page.locator(".overlay")
    overlay.wait_for()
    assert "red parts speak for" in overlay.get_attribute("alt")
    assert overlay.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    assert page.get_by_text("red speaks for it").is_visible()
    page.mouse.move(5, 5)
    overlay.wait_for(state="detached")
    # What was pressed stays.
    bars(page, "Tags").first.click()
    page.mouse.move(5, 5)
    page.locator("h1").click()
    overlay.wait_for()
    assert page.troubles == []


def test_a_picture_too_large_for_the_server_is_made_smaller(open_view, own_folder, scenes, tmp_path):
    large = tmp_path / "large.bmp"
    Image.linear_gradient("L").resize((2000, 1500)).convert("RGB").save(large)
    with running(own_folder, pictures=scenes, max_upload=1_000_000) as address:
        assert large.stat().st_size > 1_000_000
        page = open_view("", address=address)
        page.locator("input[type=file]").first.set_input_files(large)
        bars(page, "Tags").first.wait_for()
        size = page.locator(".frame img").first.evaluate("image => [image.naturalWidth, image.naturalHeight]")
    assert size == [1600, 1200]


def test_a_file_that_is_no_picture_is_named_as_such(open_view):
    page = open_view("")
    page.locator("input[type=file]").first.set_input_files(
        {"name": "mine.jpg", "mimeType": "image/jpeg", "buffer": b"no picture"}
    )
    page.get_by_role("alert").wait_for()
    assert "picture" in page.get_by_role("alert").inner_text()


# ---- search ----


def test_search_by_tags_from_the_keyboard_stands_in_the_address(open_view, ask, names):
    page = open_view("#/search")
    page.get_by_role("combobox", name="Tags").focus()
    page.keyboard.type(names["tag"])
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".tile .note").first.wait_for()
    assert page.url.endswith(f"#/search?tags={names['tag']}")
    wanted = [own["id"] for own in ask("search", tags=names["tag"], limit=10)["pictures"]]
    links = page.locator(".tile a").evaluate_all("links => links.map((link) => link.hash)")
    assert links[:10] == [f"#/look/{id}" for id in wanted]
    page.go_back()
    page.get_by_text("This is your collection: 96 pictures").wait_for()


def test_search_filters_by_class_and_by_a_picture_of_the_collection(open_view, ask, names):
    page = open_view(f"#/search?like={names['id']}")
    label = ask("collection")["classes"][1]["name"]
    page.get_by_label("Only of the class").select_option(label)
    page.get_by_role("img", name=label).first.wait_for()
    wanted = ask("search", like=names["id"], label=label, limit=60)["pictures"]
    page.locator(".tile").nth(len(wanted) - 1).wait_for()
    assert page.locator(".tile a").first.get_attribute("href") == f"#/look/{wanted[0]['id']}"
    assert page.locator(".tile").count() == len(wanted)


def test_the_collection_loads_while_one_scrolls(open_view):
    page = open_view("#/search")
    page.locator(".tile").nth(59).wait_for()
    assert page.locator(".tile").count() == 60
    page.mouse.wheel(0, 100_000)
    page.locator(".tile").nth(95).wait_for()
    assert page.locator(".tile").count() == 96


# ---- topics ----

COLOURS = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = new Map();
  for (const pixel of new Uint32Array(data.buffer)) found.set(pixel, (found.get(pixel) ?? 0) + 1);
  const often = [...found].filter(([, n]) => n > 10);
  return often.map(([pixel]) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255]);
}"""


def colours(page):
    """Colours of the map that more than a few pixels have."""
    page.wait_for_timeout(300)
    return {tuple(own) for own in page.locator("canvas").evaluate(COLOURS)}


def test_map_shows_only_the_classes_that_are_chosen(open_view):
    page = open_view("#/topics")
    settle(page)
    first, second = (59, 125, 221), (224, 123, 57)
    assert {first, second} <= colours(page)
    page.locator(".map-legend button").first.click()
    after = colours(page)
    assert first in after
    assert second not in after


def test_map_moves_and_opens_a_picture_by_keyboard(open_view):
    page = open_view("#/topics")
    settle(page)
    page.locator("canvas").focus()
    for key in ("+", "+", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    page.locator(".map-hint").wait_for()
    page.keyboard.press("Enter")
    bars(page, "Tags").first.wait_for()
    assert page.troubles == []


def test_map_follows_the_hand_and_opens_what_is_clicked(open_view):
    page = open_view("#/topics")
    settle(page)
    box = page.locator("canvas").bounding_box()
    before = page.locator("canvas").evaluate("canvas => canvas.toDataURL()")
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + 2 * box["width"], middle[1], steps=4)
    page.mouse.up()
    page.wait_for_timeout(100)
    assert page.locator("canvas").evaluate("canvas => canvas.toDataURL()") != before
    assert "#/topics" in page.url  # a drag is no click
    page.get_by_role("button", name="The whole map").click()
    page.keyboard.press("Shift+Tab")
    place = page.evaluate(
        """async () => {
            const { roomier } = await import("./static/views/map.js");
            const found = await (await fetch("api/v1/map")).json();
            return [roomier(found.x)[0], roomier(found.y)[0]];
        }"""
    )
    page.mouse.click(
        *(
            box[s] + box[d] * (0.5 + 0.86 * (at - 0.5))
            for s, d, at in zip("xy", ("width", "height"), place, strict=True)
        )
    )
    bars(page, "Tags").first.wait_for()


def test_classes_show_their_visual_words_and_tags(open_view, ask):
    page = open_view("#/topics/classes")
    settle(page)
    assert page.locator(".class-card h2").all_inner_texts() == [own["label"] for own in ask("topics")["classes"]]
    card = page.locator(".class-card").first
    assert card.locator("img").first.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    assert card.locator("a.chip").count() > 0


# ---- tags ----


def test_tags_are_found_by_their_letters(open_view, ask):
    page = open_view("#/tags")
    page.get_by_label("Find a tag").fill("se")
    wanted = [own["name"] for own in ask("tags")["tags"] if "se" in own["name"]]
    assert wanted
    assert page.locator(".tag-list .what").all_inner_texts() == wanted


def test_review_by_keyboard_ends_in_the_decisions(open_view, site, names):
    tag = names["tag"]
    page = open_view(f"#/tags/{tag}/missing")
    page.get_by_role("button", name="Has it").wait_for()
    with httpx.Client(base_url=f"{site}/api/v1/", timeout=60) as client:
        queue = [own["id"] for own in client.get("missing", params={"tag": tag}).json()["pictures"]]
        saved = []
        page.on("response", lambda response: response.request.method == "PUT" and saved.append(response.ok))
        for key in ("a", "ArrowLeft", " ", "r", "u"):
            page.keyboard.press(key)
        while len(saved) < 4:  # the space bar saves nothing, to undo does
            page.wait_for_timeout(20)
        page.get_by_text("2 decisions").wait_for()
        decided = {own["picture"]["id"]: own["decision"] for own in client.get("decisions").json()["decisions"]}
    assert decided == {queue[0]: "accepted", queue[1]: "rejected"}
    assert page.locator("figcaption a").get_attribute("href") == f"#/look/{queue[3]}"
    with page.expect_download() as download:
        page.get_by_role("link", name="Table (CSV)").click()
    assert download.value.path().read_text().splitlines()[0] == "file_name,tags"
    assert page.troubles == []


def test_review_asks_again_for_what_was_not_saved(open_view, names):
    page = open_view(f"#/tags/{names['tag']}/doubtful")
    page.get_by_role("button", name="Has it").wait_for()
    first = page.locator("figcaption a").inner_text()
    page.route("**/decisions", lambda route: route.abort() if route.request.method == "PUT" else route.continue_())
    page.keyboard.press("r")
    page.get_by_role("alert").wait_for()
    assert page.locator("figcaption a").inner_text() == first


# ---- quality ----


def test_cell_of_the_confusion_shows_its_pictures(open_view, ask):
    confusion = ask("quality")["confusion"]
    page = open_view("#/quality")
    cell = page.locator(".confusion button").first
    number = int(cell.inner_text())
    cell.click()
    examples = page.locator(".examples .tile")
    examples.nth(min(number, 24) - 1).wait_for()
    assert examples.count() == min(number, 24)
    assert sum(map(sum, confusion["counts"])) == sum(map(int, page.locator(".confusion button").all_inner_texts()))


def test_table_of_tags_is_sorted_by_what_is_pressed(open_view):
    page = open_view("#/quality")
    page.get_by_role("button", name="Found", exact=True).click()
    shares = page.locator(".figures tbody tr td:nth-child(4)").all_inner_texts()
    values = [float(text.strip("<% ")) if "%" in text else -1.0 for text in shares]
    assert len(values) > 1
    assert values == sorted(values, reverse=True)


# ---- the frame ----


def test_a_server_with_a_token_asks_for_it_once(open_view, own_folder, scenes):
    with running(own_folder, pictures=scenes, token="open, sesame, please") as address:  # noqa: S106
        page = open_view("", address=address)
        page.get_by_label("Token").fill("open")
        page.keyboard.press("Enter")
        page.get_by_text("That is not the token").wait_for()
        page.get_by_label("Token").fill("open, sesame, please")
        page.keyboard.press("Enter")
        image = page.locator(".samples img").first
        image.wait_for()
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
        page.reload()
        page.locator(".samples img").first.wait_for()


def test_all_is_reached_by_keyboard(open_view):
    page = open_view("")
    page.locator(".samples img").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Choose a picture"
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    bars(page, "Classes").first.wait_for()
    page.keyboard.press("/")
    page.get_by_role("heading", name="Search").wait_for()


def test_an_error_says_what_to_do_and_can_be_tried_again(open_view, site):
    page = open_view("#/search")
    page.locator(".tile").first.wait_for()
    page.route("**/api/v1/map", lambda route: route.abort())
    page.get_by_role("link", name="Topics").click()
    page.get_by_text("The server does not answer.").wait_for()
    page.unroute("**/api/v1/map")
    page.get_by_role("button", name="Try again").click()
    page.locator("canvas").wait_for()
    assert page.get_by_text("The server does not answer.").count() == 0


def test_a_busy_server_is_asked_again_after_a_while(open_view):
    page = open_view("#/search")
    page.locator(".tile").first.wait_for()
    answers = []

    def busy(route):
        answers.append(route)
        route.fulfill(status=429, headers={"Retry-After": "1"}) if len(answers) == 1 else route.continue_()

    page.route("**/api/v1/tags?*", busy)
    page.get_by_role("link", name="Tags").click()
    page.locator(".tag-list a").first.wait_for()
    assert len(answers) == 2


def test_back_finds_a_list_where_it_was_left(open_view):
    page = open_view("#/search")
    page.locator(".tile").nth(59).wait_for()
    page.mouse.wheel(0, 100_000)
    page.locator(".tile").nth(95).wait_for()
    tile = page.locator(".tile a").nth(90)
    tile.scroll_into_view_if_needed()
    where = page.evaluate("scrollY")
    tile.click()
    bars(page, "Tags").first.wait_for()
    assert page.evaluate("scrollY") == 0
    page.go_back()
    page.locator(".tile").nth(95).wait_for()
    assert page.evaluate("scrollY") == pytest.approx(where, abs=5)


# ---- files ----


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/static/vendor/preact-htm.js"])
def test_files_are_asked_for_again_but_not_sent_again(client, path):
    first = client.get(path)
    assert first.status_code == 200
    assert first.headers["cache-control"] == "no-cache"
    if path != "/":
        assert client.get(path, headers={"If-None-Match": first.headers["etag"]}).status_code == 304


def test_nothing_of_the_page_leads_elsewhere_or_makes_code_of_text():
    files = [path for path in PAGE.rglob("*") if path.suffix in (".js", ".html", ".css", ".svg")]
    assert len(files) > 20
    for path in files:
        text = path.read_text().replace("http://www.w3.org/", "")
        assert not any(word in text for word in ("http://", "https://", "eval(", "new Function")), path
