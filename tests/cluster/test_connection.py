import os
import sys

import pytest

from pictopic.cluster.connection import connected, load_ray


def test_without_ray_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"a cluster needs Ray: pip install 'pictopic\[cluster\]'"):
        load_ray()


def test_ray_is_not_let_to_tell_its_makers(monkeypatch):
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    load_ray()
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_an_address_where_there_is_no_cluster_is_one_line():
    with pytest.raises(ConnectionError, match=r"there is no Ray cluster at 127\.0\.0\.1:1"), connected("127.0.0.1:1"):
        pass


@pytest.mark.slow
def test_a_cluster_that_is_connected_already_is_used_and_left_alone(cluster):
    with connected("auto") as ray:
        assert ray is cluster
    assert cluster.is_initialized()
