"""Checks that the files of a saved model are those that were saved.

Hashes detect accidents: flipped bits, truncated files, parts of another model.  They do not stop an attacker, who can
write hashes, too: everything that is read is checked all the same.
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

_SMALL, _QUICK = 8 << 20, 256 << 20  # bytes per file, and in all, that are hashed on loading
_DIGEST = re.compile(r"[0-9a-f]{64}")


class ModelFiles:
    """The files of a model, as its configuration lists them.

    Parameters
    ----------
    folder : Path
        Folder of the model.
    config : str
        Name of the configuration file.
    config_sha256 : str
        Its SHA-256 when it was read or written.
    table : mapping
        SHA-256 and size in bytes of each other file, by its name in the folder.
    """

    def __init__(self, folder: Path, config: str, config_sha256: str, table: Mapping[str, tuple[str, int]]):
        self.folder, self.config, self.config_sha256 = folder, config, config_sha256
        self.table = dict(table)

    @classmethod
    def read(cls, folder: Path, config: str, config_sha256: str, table: Any) -> ModelFiles:
        """Read a configuration's table; a ValueError if it is damaged, or a name leads out of the folder."""
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

        Does nothing if another model has meanwhile replaced this one.
        """
        for name, (digest, _) in sorted(self.table.items()):
            path = self.folder / name
            try:
                damaged = sha256(path) != digest
            except OSError:
                damaged = True
            if damaged and self._is_there():
                raise ValueError(
                    f"{path} is damaged: it is not the file that was saved; restore a copy, or fit the model again"
                )

    def _is_there(self) -> bool:
        """Return whether the model in the folder is still this one."""
        try:
            return sha256(self.folder / self.config) == self.config_sha256
        except OSError:
            return not self.folder.exists()


def table_of(folder: Path, known: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the table of all files below a folder, for its configuration.

    Parameters
    ----------
    folder : Path
    known : mapping
        Known hashes by file name, which are not computed again.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {
        name: {"sha256": known.get(name) or sha256(folder / name), "bytes": (folder / name).stat().st_size}
        for name in names
        if not name.endswith(TIMINGS)
    }


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a configuration's values, without the checksum itself.

    Examples
    --------
    >>> from pictopic.picture_model.integrity import checksum
    >>> checksum({"a": 1, "b": 2, "checksum": "?"}) == checksum({"b": 2, "a": 1})
    True
    """
    values = {key: value for key, value in content.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
