"""Export of answers: CSV, Parquet, HTML pages with thumbnails."""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from pictopic.corpus.corpus import Corpus
from pictopic.files import csv_text, write_text, writing
from pictopic.tasks.topics import ClassTopic
from pictopic.words.codebook import Patch
from pictopic.words.pictures import PictureError, open_picture
from pictopic.words.tags import split_tags

_STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: 1rem; }
figure { margin: 0; border: 1px solid var(--line); border-radius: .5rem; padding: .5rem; }
figure img { width: 100%; height: 8rem; object-fit: cover; border-radius: .3rem; }
figcaption { font-size: .85rem; overflow-wrap: anywhere; }
section { border-top: 1px solid var(--line); margin-top: 1.5rem; }
h3 { margin: 1rem 0 .25rem; }
section p { margin: 0 0 .5rem; }
.words { display: grid; grid-template-columns: repeat(4, minmax(0, 8rem)); gap: .75rem; margin-bottom: .75rem; }
figure.word img { height: auto; display: block; }
@media (max-width: 30rem) {
  body { margin: 1rem auto; }
  .grid { grid-template-columns: repeat(3, 1fr); }
  .grid, .words { gap: .4rem; }
  figure { padding: .25rem; }
  figure img { height: 6rem; }
}
"""
_WORDS_MEAN = (
    "A visual word is a kind of small patch that the model tells apart; each is shown by up to 16 examples. "
    "Below a topic&#8217;s visual words are the pictures that are most typical of it."
)
_MAX_TOPICS = 30
_THUMBNAIL = 192  # pixels
_GAP = 2  # pixels between patches
UNKNOWN = (128, 128, 128)  # colour in place of a picture that is gone


def write_tags(path: Path, names: Sequence[str], answers: Sequence[Sequence[tuple[str, float]]]) -> None:
    """Write tags as CSV with the columns file_name and tags, as `pictopic build` reads it."""
    write_text(path, tags_csv((name, [tag for tag, _ in answer]) for name, answer in zip(names, answers, strict=True)))


def tags_csv(tags: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return names and tags as the CSV that `pictopic build` reads.

    Examples
    --------
    >>> from pictopic.tasks.exports import tags_csv
    >>> tags_csv([("a.jpg", ["boat", "sea"]), ("b.jpg", ["paris, france"])]).splitlines()
    ['file_name,tags', 'a.jpg,boat;sea', 'b.jpg,"[""paris, france""]"']
    """
    return csv_text([("file_name", "tags"), *((name, _cell(list(picture_tags))) for name, picture_tags in tags)])


def _cell(tags: list[str]) -> str:
    """Return tags as one CSV cell: a JSON list if a tag contains a separator."""
    text = ";".join(tags)
    return text if split_tags(text) == tags else json.dumps(tags, ensure_ascii=False)


def write_vectors(path: Path, corpus: Corpus, vectors: np.ndarray) -> tuple[int, int]:
    """Write representations as Parquet with the columns file_name, labels, tags and vector."""
    table = corpus.table(["file_name", "labels", "tags"])
    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
    table = table.append_column("vector", pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]))
    with writing(path) as temporary:
        pq.write_table(table, temporary)
    return vectors.shape[0], vectors.shape[1]


def write_thumbnails(path: Path, title: str, pictures: Sequence[tuple[str, Path, str]]) -> None:
    """Write an HTML page of pictures, given as (name, file, caption)."""
    figures = [_figure(name, file, text) for name, file, text in pictures]
    _write_page(path, title, f'<div class="grid">{"".join(figures)}</div>')


def write_topics(path: Path, corpus: Corpus, classes: Sequence[ClassTopic], units: Sequence[dict[str, Any]]) -> None:
    """Write an HTML page with the words of each class and of each hidden unit.

    Parameters
    ----------
    path : Path
        HTML file to write; the pictures are embedded in it.
    corpus : Corpus
        The collection.
    classes : sequence of ClassTopic
        As `PictureModel.topics` returns them; may be empty.
    units : sequence of dict
        As `PictureModel.get_topic_info` returns them; units that are strongest in no picture are left out.
    """
    files = dict(zip(corpus.file_names, corpus.paths, strict=True)) if corpus.options is not None else {}
    word_figures: dict[int, str] = {}  # cached: most visual words occur in several topics

    def card(title: str, tags: Sequence[str], words: Sequence[tuple[int, float]], names: Sequence[str]) -> str:
        parts = [f"<h3>{html.escape(title)}</h3>"]
        if tags:
            parts.append(f"<p>{html.escape(', '.join(tags))}</p>")
        if files:
            for word, _ in words:
                if word not in word_figures:
                    word_figures[word] = _visual_word(corpus, word, files)
            parts.append(f'<div class="words">{"".join(word_figures[word] for word, _ in words)}</div>')
        if names:
            shown = "".join(_figure(name, files[name], "") for name in names if name in files)
            parts.append(f'<div class="grid">{shown}</div>' if shown else f"<p>{html.escape(', '.join(names))}</p>")
        return f"<section>{''.join(parts)}</section>"

    body = []
    if files:
        body.append(f"<p>{_WORDS_MEAN}</p>")
    if classes:
        body.append("<h2>Classes</h2>")
    body += [card(topic.label, [tag for tag, _ in topic.tags], topic.visual_words, []) for topic in classes]
    if units:
        body.append("<h2>Topics</h2>")
    for unit in [unit for unit in units if unit["Count"]][:_MAX_TOPICS]:
        n_pictures = "1 picture" if unit["Count"] == 1 else f"{unit['Count']:,} pictures"
        title = f"Topic {unit['Topic']} ({n_pictures})"
        body.append(card(title, unit["Representation"][:6], unit["Visual_Words"], unit["Representative_Docs"]))
    _write_page(path, "What the collection is about", "".join(body))


def _write_page(path: Path, title: str, body: str) -> None:
    safe = html.escape(title)
    write_text(
        path,
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{safe}</title><style>{_STYLE}</style><h1>{safe}</h1>{body}</html>\n",
    )


def _figure(name: str, file: Path, text: str) -> str:
    safe = html.escape(name)
    return f"<figure>{_image(file, _THUMBNAIL, safe)}<figcaption>{safe} {html.escape(text)}</figcaption></figure>"


def _image(file: Path, side: int, alt: str) -> str:
    try:
        image = open_picture(file, max_side=side).convert("RGB")
    except PictureError as error:
        return f"<p>{alt}: {html.escape(str(error))}</p>"
    return f'<img alt="{alt}" src="{data_uri(image)}">'


def data_uri(image: Image.Image, quality: int = 85) -> str:
    """Return a picture as a data URI, to embed it in a page.

    Examples
    --------
    >>> from PIL import Image
    >>> from pictopic.tasks.exports import data_uri
    >>> data_uri(Image.new("RGB", (8, 8)))[:27]
    'data:image/jpeg;base64,/9j/'
    """
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg(image, quality)).decode()}"


def jpeg(image: Image.Image, quality: int = 85) -> bytes:
    """Return a picture as the bytes of a JPEG file."""
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "JPEG", quality=quality, optimize=True)
    return buffer.getvalue()


def _visual_word(corpus: Corpus, word: int, files: dict[str, Path]) -> str:
    """Return a visual word as a figure with a grid of its example patches; empty if it has none."""
    patches = [] if corpus.codebook is None else corpus.codebook.examples[word]
    if not any(patch.file_name in files for patch in patches):
        return ""
    image = patch_mosaic(patches, files, None if corpus.options is None else corpus.options.max_side)
    alt = f"visual word {word}: {len(patches)} example patches"
    return (
        f'<figure class="word"><img alt="{alt}" src="{data_uri(image)}"><figcaption>word {word}</figcaption></figure>'
    )


def cut_patch(patch: Patch, file: Path, max_side: int | None) -> Image.Image | None:
    """Cut a patch out of its picture; None if the picture cannot be read."""
    try:
        image = open_picture(file, max_side=max_side).convert("RGB")
    except PictureError:
        return None
    half = 2 * patch.bin_size
    return image.crop((round(patch.x - half), round(patch.y - half), round(patch.x + half), round(patch.y + half)))


def mosaic(images: Sequence[Image.Image | None], columns: int = 4, side: int = 38) -> Image.Image:
    """Arrange pictures of any size as the tiles of one picture; tiles that are None are grey.

    Parameters
    ----------
    images : sequence of PIL images or None
        Row by row.
    columns : int, default=4
        Tiles in a row; as many rows as columns.
    side : int, default=38
        Pixels per tile.

    Returns
    -------
    PIL image

    Examples
    --------
    >>> from PIL import Image
    >>> from pictopic.tasks.exports import mosaic
    >>> mosaic([Image.new("RGB", (16, 16), "red")] * 4, columns=2, side=10).size
    (22, 22)
    """
    whole = columns * side + (columns - 1) * _GAP
    page = Image.new("RGB", (whole, whole), UNKNOWN)
    for k, image in enumerate(images[: columns**2]):
        if image is not None:
            row, column = divmod(k, columns)
            tile = image.convert("RGB").resize((side, side), Image.Resampling.BICUBIC)
            page.paste(tile, (column * (side + _GAP), row * (side + _GAP)))
    return page


def patch_mosaic(
    patches: Sequence[Patch], files: Mapping[str, Path], max_side: int | None, side: int = 38
) -> Image.Image:
    """Arrange the example patches of a visual word in a grid; patches whose picture is gone are grey.

    Parameters
    ----------
    patches : sequence of Patch
        `Codebook.examples` of the word.
    files : mapping of str to Path
        Paths of the pictures by file name.
    max_side : int or None
        Size in pixels to which pictures were scaled down before patches were cut.
    side : int, default=38
        Pixels per patch.

    Returns
    -------
    PIL image
    """
    cut = [
        cut_patch(patch, files[patch.file_name], max_side) if patch.file_name in files else None for patch in patches
    ]
    return mosaic(cut, side=side)
