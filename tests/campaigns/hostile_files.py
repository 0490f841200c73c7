"""Files that nobody wants: pictures that lie, keywords without end, tables and counts as no program writes them."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import os
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.support.pictures import photo_of, png, saved

KINDS = {"JPEG": ".jpg", "PNG": ".png", "TIFF": ".tif", "WEBP": ".webp", "GIF": ".gif", "BMP": ".bmp"}
ODD_NAMES = (
    "a b", "ä", "e\u0301", "日本", "😀", "a\nb", "a\rb", "a\r\nb", 'a"b', "a,b", "a;b", "a|b", "=1+1", "-rf", "@x",
    "a'b", "a\\b", "%2e",
    "\u202egpj", "CON", "a..b", "x" * 240, "\udcff\udcfe", "\x7f", "\x1b[2J", "&amp;", "<b>", "{0}", "%s", "$(x)", "~",
)  # fmt: skip
_WHOLE = {kind: saved(photo_of(seed=k), kind) for k, kind in enumerate(KINDS)}
_XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description><dc:subject xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Bag>{}</rdf:Bag></dc:subject>'
    "</rdf:Description></rdf:RDF></x:xmpmeta>"
)
_LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 20}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)


# ---- pictures --------------------------------------------------------------------------------------------------------


def write_hostile_file(folder: Path, number: int, rng: random.Random) -> str:
    """Write a file that has a picture's name; the name."""
    kind = rng.choice(sorted(KINDS))
    stem = f"{number}-{rng.choice(ODD_NAMES)}" if rng.random() < 0.2 else str(number)
    path = folder / f"{stem[:240]}{KINDS[kind]}"
    how = rng.choice(
        ("mutated",) * 6 + ("cut", "spliced", "lying", "bomb", "chunk", "xmp", "xmp", "sidecar", "special", "other")
    )
    if how == "special":
        _write_special(path, rng)
        return path.name
    content = _CONTENTS[how](kind, rng) if how != "sidecar" else _WHOLE[kind]
    path.write_bytes(content)
    if how == "sidecar":
        _write_sidecar(rng.choice((path.with_suffix(".xmp"), path.with_name(path.name + ".xmp"))), rng)
    return path.name


def _mutated(kind: str, rng: random.Random) -> bytes:
    content = bytearray(_WHOLE[kind])
    for _ in range(rng.choice((1, 2, 5, 30))):
        start = int(rng.random() ** 3 * len(content))  # headers are where it hurts
        patch = rng.choice((rng.randbytes(rng.randint(1, 6)), b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"))
        content[start : start + len(patch)] = patch
    return bytes(content)


def _cut(kind: str, rng: random.Random) -> bytes:
    return _WHOLE[kind][: rng.randrange(len(_WHOLE[kind]))]


def _spliced(kind: str, rng: random.Random) -> bytes:
    other = _WHOLE[rng.choice(sorted(KINDS))]
    return _WHOLE[kind][: rng.randrange(200)] + other[rng.randrange(len(other)) :]


def _lying(kind: str, rng: random.Random) -> bytes:
    """A header that promises another size."""
    width, height = (rng.choice((0, 1, 65535, 2**31 - 1, 2**32 - 1, 30_000)) for _ in "wh")
    content = bytearray(_WHOLE[kind])
    if kind == "PNG":
        body = b"IHDR" + struct.pack(">II", width, height) + content[24:29]
        return bytes(content[:12]) + body + struct.pack(">I", zlib.crc32(body)) + bytes(content[33:])
    if kind == "BMP":
        content[18:26] = struct.pack("<II", width, height)
    elif kind == "GIF":
        content[6:10] = struct.pack("<HH", width & 0xFFFF, height & 0xFFFF)
    elif kind == "JPEG":
        place = content.find(b"\xff\xc0")
        content[place + 5 : place + 9] = struct.pack(">HH", height & 0xFFFF, width & 0xFFFF)
    else:
        place = rng.randrange(4, 60)
        content[place : place + 4] = struct.pack("<I", width)
    return bytes(content)


def _bomb(kind: str, rng: random.Random) -> bytes:
    """Many pixels in few bytes: sometimes just below the limit, and then whole."""
    if rng.random() < 0.9:
        return png(rng.choice((10_001, 40_000, 2**31 - 1)), rng.choice((10_000, 2**31 - 1)), 8, 2, bytes(99))
    squeezed = zlib.compressobj(9)
    rows = b"".join(squeezed.compress(bytes(8001)) for _ in range(8000)) + squeezed.flush()
    whole = png(8000, 8000, 8, 0, b"")
    body = b"IDAT" + rows
    chunk = struct.pack(">I", len(rows)) + body + struct.pack(">I", zlib.crc32(body))
    end = whole.index(b"IDAT") - 4
    return whole[:end] + chunk + whole[-12:]


def _chunk(kind: str, rng: random.Random) -> bytes:
    """A PNG whose texts or colour profile unpack to a hundred megabytes."""
    packed = zlib.compress(bytes(100 << 20), 9)
    name, before = rng.choice(((b"zTXt", b"a\0\0"), (b"iCCP", b"a\0\0"), (b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0")))
    rows = b"".join(b"\0" + bytes(48 * 3) for _ in range(48))
    return png(48, 48, 8, 2, rows, (name, before + packed))


def _xmp_content(rng: random.Random) -> bytes:
    items = rng.choice((
        "".join(f"<rdf:li>word{k}</rdf:li>" for k in range(20_000)),
        f"<rdf:li>{'x' * 200_000}</rdf:li>",
        "<rdf:li>" * 20_000,
        "<rdf:li>&a;</rdf:li>", "<rdf:li>&i;</rdf:li>", "<rdf:li>a</rdf:li>" + "<", "<rdf:li>a\0b</rdf:li>",
        "<rdf:li>a\rb\nc</rdf:li><rdf:li></rdf:li><rdf:li> </rdf:li><rdf:li>,;|</rdf:li>", "<rdf:li>\ud800</rdf:li>",
    ))  # fmt: skip
    text = _XMP.format(items)
    text = _LAUGHS + text if "&" in items else text
    content = text.encode(rng.choice(("utf-8", "utf-8", "utf-16", "utf-32")), "surrogatepass")
    if rng.random() < 0.3:
        content = content[: rng.randrange(len(content))]
    return content


def _xmp(kind: str, rng: random.Random) -> bytes:
    """A picture with keywords inside; XMP, or IPTC."""
    image = photo_of()
    buffer = io.BytesIO()
    if rng.random() < 0.3:
        fields = b"".join(
            b"\x1c\x02\x19" + struct.pack(">H", rng.choice((len(word), 0, 0xFFFF, 0x8004))) + word
            for word in [rng.randbytes(rng.randint(0, 9)) for _ in range(rng.choice((1, 50, 3000)))]
        )
        block = b"8BIM\x04\x04\0\0" + struct.pack(">I", rng.choice((len(fields), 2**31, 0))) + fields[:60_000]
        image.save(buffer, "JPEG")
        jpeg, marker = buffer.getvalue(), b"Photoshop 3.0\0" + block
        return jpeg[:2] + b"\xff\xed" + struct.pack(">H", min(65535, len(marker) + 2)) + marker[:65533] + jpeg[2:]
    content = _xmp_content(rng)
    if kind == "JPEG":
        image.save(buffer, "JPEG", xmp=content[:60_000])
    elif kind == "WEBP":
        image.save(buffer, "WEBP", xmp=content)
    else:
        rows = b"".join(b"\0" + bytes(48 * 3) for _ in range(48))
        return png(48, 48, 8, 2, rows, (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + content))
    return buffer.getvalue()


def _other(kind: str, rng: random.Random) -> bytes:
    return rng.choice(
        (b"", b"\0", b"GIF89a", b"%PDF-1.4", b"<svg/>", b"PK\3\4", rng.randbytes(300), b"BM" + b"\xff" * 60)
    )


_CONTENTS = {
    "mutated": _mutated, "cut": _cut, "spliced": _spliced, "lying": _lying, "bomb": _bomb, "chunk": _chunk, "xmp": _xmp,
    "other": _other,
}  # fmt: skip


def _write_special(path: Path, rng: random.Random) -> None:
    """What is no file at all."""
    how = rng.choice(("self", "zero", "dangling", "fifo", "outside", "sparse"))
    if how == "fifo":
        os.mkfifo(path)
    elif how == "sparse":
        with path.open("wb") as file:
            file.write(_WHOLE["JPEG"][:50])
            file.truncate(1 << 34)
    else:
        targets = {"self": path.name, "zero": "/dev/zero", "dangling": "nowhere", "outside": "/etc/passwd"}
        path.symlink_to(targets[how])


def _write_sidecar(path: Path, rng: random.Random) -> None:
    how = rng.choice(("xmp", "xmp", "self", "fifo", "folder", "sparse"))
    if how == "xmp":
        path.write_bytes(_xmp_content(rng))
    elif how == "folder":
        path.mkdir()
    elif how == "fifo":
        os.mkfifo(path)
    elif how == "self":
        path.symlink_to(path.name)
    else:
        with path.open("wb") as file:
            file.truncate(1 << 34)


def write_good_pictures(folder: Path, n: int) -> list[str]:
    """Pictures without anything wrong."""
    names = [f"good{k}.png" for k in range(n)]
    for k, name in enumerate(names):
        Image.Image.save(photo_of(seed=k), folder / name)
    return names


# ---- tables ----------------------------------------------------------------------------------------------------------


def hostile_row(number: int, good: list[str], rng: random.Random) -> dict[str, Any]:
    """A row of metadata; each cell is good, bad or worse."""
    name = rng.choice((
        f"missing{number}.jpg", rng.choice(good), "/etc/passwd", "../good0.png", "..", ".", "", None, "a\0b.png",
        "x" * 5000,
        "good0.png/", "./good1.png", "http://a/b.png", "a\nb.png", "\ud800.png", "sub/../good0.png", "C:\\a.png",
    ))  # fmt: skip
    tags = rng.choice((
        "red;blue", "", None, "x" * 300_000, ";".join(map(str, range(5000))), "[[[[", '["a", "b"]', "\0", "\r\n",
        " ; , | ",
        "=cmd()", "\u202e", "a" + "\u0301" * 500, 5, -1.5, True, [], ["a"] * 2000, [None, ["b"]], {"a": 1},
    ))  # fmt: skip
    label = rng.choice(("dots", "stripes", "", None, "x" * 10_000, "a\nb", 7, ["a", "b"], float("nan")))
    return {"file_name": name, "tags": tags, "label": label}


def write_table(folder: Path, rows: list[dict[str, Any]], rng: random.Random) -> bool:
    """Write a metadata file; whether it is a proper one, of which each row must be accounted for."""
    kind = rng.choice(("csv", "jsonl", "parquet", "broken csv", "broken jsonl", "broken parquet", "odd parquet"))
    path = folder / f"metadata.{kind.split()[-1]}"
    if kind.endswith("csv"):
        path.write_bytes(_csv(rows))
    elif kind.endswith("jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "odd parquet":
        pq.write_table(_odd_table(len(rows), rng), path)
    else:
        texts = [{key: None if value is None else _utf8(value) for key, value in row.items()} for row in rows]
        pq.write_table(pa.Table.from_pylist(texts), path)
    if not kind.startswith("broken"):
        return kind != "odd parquet"
    content = path.read_bytes()
    how = rng.choice(("cut", "flip", "start", "bytes", "quote", "deep", "utf-16"))
    place = rng.randrange(len(content))
    if how == "cut":
        content = content[:place]
    elif how in ("flip", "bytes"):
        content = content[:place] + rng.randbytes(1 if how == "flip" else 50) + content[place + 1 :]
    elif how == "start":
        content = rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\0" * 10, b"\n\n", b'"')) + content
    elif how == "quote":
        content = content[:place] + b'"' + content[place:]
    elif how == "deep":
        content += b'{"file_name": ' + b"[" * 100_000 + b"\n"
    else:
        content = content.decode("utf-8", "replace").encode("utf-16")
    path.write_bytes(content)
    return False


def _csv(rows: list[dict[str, Any]]) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, ["file_name", "tags", "label"])
    writer.writeheader()
    for row in rows:
        writer.writerow({key: "" if value is None else _utf8(value) for key, value in row.items()})
    return buffer.getvalue().encode()


def _utf8(value: Any) -> str:
    return str(value).encode("utf-8", "replace").decode()


def _odd_table(n: int, rng: random.Random) -> pa.Table:
    """Columns of types that nobody expects."""
    values = [
        pa.array([2**62 + k for k in range(n)], pa.timestamp("us")),
        pa.array([datetime.date(1, 1, 1)] * n),
        pa.array([10**15] * n, pa.date64()),
        pa.array([decimal.Decimal("1.5")] * n),
        pa.array([b"\xff\xfe"] * n, pa.binary()),
        pa.array([{"bytes": b"x", "path": "a.png"}] * n),
        pa.array([[["a"]]] * n),
        pa.nulls(n),
        pa.array(["a"] * n).dictionary_encode(),
        pa.array([float("nan")] * n),
        pa.array([2**63 - 1] * n, pa.duration("s")),
    ]
    return pa.table({name: rng.choice(values) for name in ("file_name", "tags", "label")})


def write_counts(folder: Path, n: int, rng: random.Random) -> Path:
    """Lines of LDA-C, or a CSV file of counts."""
    cells = (
        "1:2",
        "0:1",
        "5:7",
        "1:99999999999",
        "4294967296:1",
        "-1:2",
        "2:-3",
        "a:b",
        "3",
        ":",
        "1:1e5",
        "2:0",
        "9:2147483647",
    )
    if rng.random() < 0.6:
        lines = []
        for _ in range(n):
            entries = rng.choices(cells[:3] if rng.random() < 0.7 else cells, k=rng.choice((0, 1, 3, 2000)))
            lines.append(f"{rng.choice((len(entries), len(entries), 0, -1, 10**30))} {' '.join(entries)}")
        path = folder / "counts.ldac"
        path.write_bytes("\n".join(lines).encode() + rng.choice((b"", b"\n", b"\xff\xfe\n", b"\0\n")))
        return path
    values = ("1", "0", "7", "-1", "1.5", "", "x", "1e9", "99999999999999999999", "nan", " 3 ", "0x10", "\uff12")
    rows = [["label", "sea", "sky", "tree"]]
    rows += [
        ["a", *rng.choices(values[:3] if rng.random() < 0.8 else values, k=rng.choice((3, 3, 3, 2, 5)))]
        for _ in range(n)
    ]
    path = folder / "counts.csv"
    path.write_text("\n".join(",".join(row) for row in rows))
    return path
