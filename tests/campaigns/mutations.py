"""``python -m tests.campaigns.mutations``: do the campaigns find faults?  Each is put into a copy of the sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutation:
    """A fault that a campaign has to find."""

    name: str
    campaign: tuple[str, ...]  # its name and sizes
    file: str  # below src/pictopic
    edits: tuple[tuple[str, str], ...]  # old text, which is there once, and new text


MUTATIONS = [
    Mutation(
        "files are written in place", ("crashes", "--points", "1"), "files.py",
        (("    handle, name = tempfile.mkstemp(dir=path.parent", "    yield path\n    return\n"
          "    handle, name = tempfile.mkstemp(dir=path.parent"),),
    ),
    Mutation(
        "files are renamed before they are on the disk", ("crashes", "--points", "1"), "files.py",
        (("            os.fsync(file.fileno())\n        os.chmod", "            pass\n        os.chmod"),),
    ),
    Mutation(
        "folders are exchanged before they are on the disk", ("crashes", "--points", "3"), "files.py",
        (("    sync_tree(new)\n", ""),),
    ),
    Mutation(
        "nothing repairs a model between two renames", ("crashes", "--points", "3"), "files.py",
        (("    elif _exchange(new, folder):", "    elif False:"),
         ("    if not real.exists() and old.is_dir():", "    if False:")),
    ),
    Mutation("locks lock nothing", ("rounds", "--rounds", "4"), "files.py", (("    if key in keys:", "    if True:"),)),
    Mutation(
        "values of arrays are not checked", ("damaged", "--damaged", "300"), "checks.py",
        (("    if found.size and not (least <= found.min() and found.max() <= most):", "    if False:"),),
    ),
    Mutation(
        "paths may lead anywhere", ("damaged", "--damaged", "300"), "files.py",
        (("    if not is_relative(name):\n        return False\n    try:\n        real_root",
          "    return True\n    try:\n        real_root"),),
    ),
    Mutation(
        "workers outlive what has started them", ("kills", "--kills", "15"), "processes.py",
        (("    if sys.platform != \"win32\":", "    if False:"),),
    ),
    Mutation(
        "tags may be of any number and length", ("hostile", "--files", "2000"), "corpus/sources/listing.py",
        (("        if not (_is_within_limits(tags) and", "        if False and not (_is_within_limits(tags) and"),),
    ),
]  # fmt: skip


def is_found(mutation: Mutation, out: Path) -> bool:
    """Whether the campaign fails."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, out / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = out / "src" / "pictopic" / mutation.file
    text = path.read_text()
    for old, new in mutation.edits:
        if text.count(old) != 1:
            raise ValueError(f"{mutation.name}: {old!r} is in {mutation.file} {text.count(old)} times")
        text = text.replace(old, new)
    path.write_text(text)
    command = [sys.executable, "-m", "tests.campaigns", *mutation.campaign, "--seed", "1", "--out", str(out / "trials")]
    environment = os.environ | {"PYTHONPATH": str(out / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=out, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if ":" in line and "{" in line]
    print(f"  {lines[0].strip()[:300] if lines else done.stderr[-300:]}")
    return done.returncode == 1 and bool(lines)


def main(wanted: list[str]) -> int:
    """Print which mutations are found; 1 if one is not."""
    missed = 0
    for mutation in MUTATIONS:
        if not wanted or any(word in mutation.name for word in wanted):
            with tempfile.TemporaryDirectory() as out:
                found = is_found(mutation, Path(out))
            print(f"{'found ' if found else 'MISSED'}  {mutation.campaign[0]}: {mutation.name}", flush=True)
            missed += not found
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
