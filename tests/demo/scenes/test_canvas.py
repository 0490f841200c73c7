import numpy as np
import pytest

from pictopic.demo.scenes.canvas import Canvas


def test_what_is_painted_over_is_no_longer_visible():
    canvas = Canvas()
    everywhere = np.ones((256, 256), np.float32)
    canvas.layer(np.full((3, 256, 256), 90.0), everywhere, "sea")
    canvas.layer(np.full((3, 256, 256), 90.0), everywhere, "sand")
    canvas.ellipse((128, 128), 20, 20, (200, 0, 0), "boat")
    assert set(canvas.shares()) == {"sand", "boat"}
    assert canvas.shares()["boat"] == pytest.approx(np.pi * 100 / 256**2, rel=0.15)
