"""How the things of each scene are put together: a file a scene."""

from __future__ import annotations

from collections.abc import Callable

from pictopic.demo.scenes.layouts.coast import draw_coast
from pictopic.demo.scenes.layouts.forest import draw_forest
from pictopic.demo.scenes.layouts.highway import draw_highway
from pictopic.demo.scenes.layouts.insidecity import draw_insidecity
from pictopic.demo.scenes.layouts.mountain import draw_mountain
from pictopic.demo.scenes.layouts.opencountry import draw_opencountry
from pictopic.demo.scenes.layouts.street import draw_street
from pictopic.demo.scenes.layouts.tallbuilding import draw_tallbuilding
from pictopic.demo.scenes.stage import Stage

LAYOUTS: dict[str, Callable[[Stage], None]] = {
    "highway": draw_highway,
    "insidecity": draw_insidecity,
    "coast": draw_coast,
    "forest": draw_forest,
    "tallbuilding": draw_tallbuilding,
    "street": draw_street,
    "opencountry": draw_opencountry,
    "mountain": draw_mountain,
}
