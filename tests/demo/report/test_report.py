import re
from html.parser import HTMLParser

import pytest

from pictopic.demo.report import Report, render, write_report
from tests.support.report import HOSTILE, LONG, made_report

SECTIONS = ["figures", "confusion", "tags", "neighbours", "topics", "explained", "training", "next"]


class Page(HTMLParser):
    """Elements with their attributes, and text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def all(self, *names):
        return [attributes for tag, attributes in self.elements if tag in names]


def test_sections_come_in_order_with_headings_and_links():
    page = Page(render(made_report()))
    assert [own["id"] for own in page.all("section")] == SECTIONS
    assert [own["href"] for own in page.all("a")][1:] == [f"#{name}" for name in SECTIONS]
    assert len(page.all("h1")) == 1
    assert len(page.all("h2")) == len(SECTIONS)


def test_what_is_empty_is_left_out():
    page = Page(render(Report("Nothing")))
    assert not page.all("section", "img", "svg", "dl")
    assert "Nothing" in page.text


def test_every_picture_has_a_text_in_its_place():
    images = Page(render(made_report())).all("img")
    assert len(images) > 10
    assert all(own["alt"] and own["src"].startswith("data:image/jpeg;base64,") for own in images)


def test_ids_are_unique_and_those_that_are_referred_to_exist():
    page = Page(render(made_report()))
    ids = [own["id"] for _, own in page.elements if "id" in own]
    assert len(ids) == len(set(ids))
    used = {own[name] for _, own in page.elements for name in ("popovertarget", "aria-labelledby") if name in own}
    used |= {own["href"][1:] for own in page.all("a")}
    assert used <= set(ids)


def test_hostile_names_are_only_text():
    page = Page(render(made_report(HOSTILE)))
    plain = Page(render(made_report()))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert not page.all("script")
    assert not [name for _, own in page.elements for name in own if name.startswith("on")]
    assert page.text.count(HOSTILE) > 10


def test_nothing_is_loaded_from_elsewhere():
    text = render(made_report())
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<link|<script|<iframe|<object", text, re.IGNORECASE)
    assert "default-src 'none'" in text


def test_right_and_wrong_are_told_by_more_than_colour():
    text = render(made_report())
    assert re.search(r"✗</span> <span class=\"unseen\">wrong: </span><s>coast</s>", text)
    assert re.search(r"✓</span> <span class=\"unseen\">right: </span>sea", text)


def test_missing_tags_are_listed():
    assert "Missing: boat, coast" in Page(render(made_report())).text


def test_best_figures_are_bold():
    text = render(made_report())
    assert "<strong>90.0 %</strong>" in text
    assert "<strong>400</strong>" in text
    assert "<strong>700</strong>" not in text


def test_same_report_is_the_same_page():
    assert render(made_report(LONG)) == render(made_report(LONG))


def test_page_is_written_as_utf8(tmp_path):
    write_report(tmp_path / "new" / "report.html", made_report("Küste 海岸"))
    assert "Küste 海岸" in (tmp_path / "new" / "report.html").read_text(encoding="utf-8")


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(scheme):
    found = re.findall(r"--(\w+): (#\w{6})", render(Report("Colours")))
    colours = dict(found[: len(found) // 2] if scheme == "light" else found[len(found) // 2 :])
    for text in ("ink", "soft", "accent", "right", "wrong"):
        for behind in ("page", "card", "fill"):
            low, high = sorted([luminance(colours[text]), luminance(colours[behind])])
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, behind)
