import numpy as np

from pictopic.kernels.sift import eighths_of_a_turn, gradients


def test_directions_are_those_of_arctan():
    angles = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    found = [eighths_of_a_turn(np.float32(np.cos(a)), np.float32(np.sin(a))) for a in angles]
    np.testing.assert_allclose(found, angles * 4 / np.pi, atol=3e-5)


def test_gradients_keep_their_size_over_the_directions(rng):
    image = rng.uniform(0, 255, (7, 9)).astype(np.float32)
    planes = np.empty((7, 72), np.float32)
    gradients(image, planes)
    dy, dx = np.gradient(image)
    np.testing.assert_allclose(planes.reshape(7, 9, 8).sum(axis=2), np.hypot(dx, dy), rtol=1e-4)


def test_a_single_pixel_has_no_gradient():
    planes = np.ones((1, 8), np.float32)
    gradients(np.full((1, 1), 7, np.float32), planes)
    np.testing.assert_array_equal(planes, 0)
