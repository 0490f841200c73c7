"""How much memory a server needs for large pictures, and keeps."""

import io
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.server.conftest import picture
from tests.support.serving import post, serving

# What is made once takes long: one process makes it for all.
pytestmark = pytest.mark.xdist_group("server")

MEGABYTE = 1 << 20


def memory(process, kind):
    """Bytes of another process: now ("VmRSS"), or at its highest ("VmHWM")."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(rf"{kind}:\s+(\d+) kB", text)[1]) * 1024


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system does not tell it in this way")
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "I;16"])
def test_the_memory_of_a_large_picture_is_given_back(folder, mode):
    buffer = io.BytesIO()
    Image.new(mode, (7000, 7000)).save(buffer, "PNG")
    with serving(folder) as (process, address):
        for route in ("annotate", "look"):  # once, so that all code is loaded
            post(f"{address}/api/v1/{route}", picture())
        before = memory(process, "VmRSS")
        for route in ("annotate", "look", "annotate"):
            post(f"{address}/api/v1/{route}", buffer.getvalue())
        # Decoded, with four bytes a pixel, and once more without transparency.
        assert memory(process, "VmHWM") < before + 550 * MEGABYTE
        assert memory(process, "VmRSS") < before + 120 * MEGABYTE
