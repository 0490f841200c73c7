import numpy as np
import pytest

from pictopic.demo.scenes.land import flat_land, see_land
from pictopic.demo.scenes.view import Camera, choose_light


def test_ground_without_hills_is_the_same_in_slices_as_in_one_formula():
    camera = Camera(horizon=100, height=2)
    light = choose_light(np.random.default_rng(0))
    seen = see_land(camera, light, lambda x, z: 0 * x, np.geomspace(2, 5000, 200))
    flat = flat_land(camera)
    near = slice(110 - 256, None)
    np.testing.assert_allclose(seen.z[near], flat.z[near], rtol=0.02)
    np.testing.assert_allclose(seen.x[near], flat.x[near], rtol=0.02, atol=0.02)


def test_each_pixel_shows_the_first_ground_that_its_ray_meets():
    camera = Camera(horizon=120, height=6)
    light = choose_light(np.random.default_rng(0))

    def height(x, z):
        return 8 * np.sin(z / 25) ** 2 + 3 * np.cos(x / 15)

    land = see_land(camera, light, height, np.geomspace(2, 300, 800))
    distance = np.linspace(2, 300, 60_000)
    for row, column in [(110, 30), (118, 128), (130, 200), (150, 60), (180, 128), (140, 10)]:
        up, right = (camera.horizon - row - 0.5) / camera.focal, (column + 0.5 - camera.centre) / camera.focal
        below = camera.height + up * distance < height(right * distance, distance)
        if not below.any():
            assert row < land.top or land.seen[row - land.top, column] == 0
        else:
            assert land.z[row - land.top, column] == pytest.approx(distance[below.argmax()], rel=0.03)
