"""Which files a saved model consists of, and whether they still are what was saved.

Hashes find accidents: bits that flipped, files that were cut off, parts of another model.  They do not stop an
attacker, who writes hashes of his own: whatever is read is checked all the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pictopic.checks import mapping, section, shown, whole
from pictopic.files import is_inside
from pictopic.models.persistence import TIMINGS
from pictopic.storage import sha256

_SMALL, _QUICK = 8 << 20, 256 << 20  # bytes of a file, and of all, that are hashed before the first answer
_DIGEST = re.compile(r"[0-9a-f]{64}")


class ModelFiles:
    """The files of a model, as its configuration lists them.

    Parameters
    ----------
    folder : Path
        Of the model.
    config : str
        Name of the file with the configuration.
    config_sha256 : str
        Its SHA-256 when it was read or written.
    table : mapping
        For each other file, by its name in the folder, its SHA-256 and its size in bytes.
    """

    def __init__(self, folder: Path, config: str, config_sha256: str, table: Mapping[str, tuple[str, int]]):
        self.folder, self.config, self.config_sha256 = folder, config, config_sha256
        self.table = dict(table)

    @classmethod
    def read(cls, folder: Path, config: str, config_sha256: str, table: Any) -> ModelFiles:
        """From a configuration; a ValueError if it is not such a table, or a name leads out of the folder."""
        checked = {}
        for name, entry in mapping(table, "files").items():
            entry = mapping(entry, name)
            digest = section(entry, "sha256")
            if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
                raise ValueError(f"'files' has {shown(digest)} as the SHA-256 of {shown(name)}")
            if not is_inside(folder, name):
                raise ValueError(f"'files' names {shown(name)}, which is not a file inside the model")
            checked[name] = (digest, whole(section(entry, "bytes"), "bytes"))
        return cls(folder, config, config_sha256, checked)

    def check_quickly(self) -> None:
        """Check the sizes of all files and the hashes of small ones; a ValueError names the first damaged file."""
        total = 0
        for name, (digest, n_bytes) in sorted(self.table.items(), key=lambda entry: entry[1][1]):
            path = self.folder / name
            if not path.is_file():
                raise ValueError(f"{name} is missing")
            total += n_bytes
            hashed = n_bytes <= _SMALL and total <= _QUICK
            if path.stat().st_size != n_bytes or (hashed and sha256(path) != digest):
                raise ValueError(f"{name} was changed, or is of another model: it is not the file that was saved")

    def check(self) -> None:
        """Check every byte of every file; a ValueError names the first damaged one.

        Nothing is said of a model that another one has taken the place of meanwhile.
        """
        for name, (digest, _) in sorted(self.table.items()):
            path = self.folder / name
            try:
                damaged = sha256(path) != digest
            except OSError:
                damaged = True
            if damaged and self._is_there():
                raise ValueError(f"{path} is damaged: it is not the file that was saved; take a copy, or learn again")

    def _is_there(self) -> bool:
        """Whether the model in the folder is still this one."""
        try:
            return sha256(self.folder / self.config) == self.config_sha256
        except OSError:
            return not self.folder.exists()


def table_of(folder: Path, known: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The table of all files below a folder, for its configuration.

    Parameters
    ----------
    folder : Path
    known : mapping
        Hashes that need not be computed again, by file name.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {
        name: {"sha256": known.get(name) or sha256(folder / name), "bytes": (folder / name).stat().st_size}
        for name in names
        if not name.endswith(TIMINGS)
    }


def checksum(content: dict[str, Any]) -> str:
    """SHA-256 of a configuration's values, but for the checksum itself.

    Examples
    --------
    >>> from pictopic.picture_model.integrity import checksum
    >>> checksum({"a": 1, "b": 2, "checksum": "?"}) == checksum({"b": 2, "a": 1})
    True
    """
    values = {key: value for key, value in content.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
