"""What is in a folder, and what is said of its pictures."""

import csv
from pathlib import Path


def contents(folder):
    """Bytes of all files below a folder, by relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_metadata(folder: Path, rows: list[dict[str, str]]) -> None:
    """Write metadata.csv, with the columns of the first row."""
    with (folder / "metadata.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
