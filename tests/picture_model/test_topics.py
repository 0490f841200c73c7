import warnings

import numpy as np
import pytest

from pictopic import PictureModel
from pictopic.tasks.topics import npmi_coherence
from tests.support.patterns import QUICK, write_patterns


@pytest.fixture(autouse=True)
def _no_warning():
    """A measure of nothing is left out, not warned about."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def test_topic_info_counts_every_picture_once(model):
    info = model.get_topic_info()
    assert sum(own["Count"] for own in info) == 100
    assert len(info) == len(model.get_topics())
    assert len(info[0]["Representative_Docs"]) == 5
    assert model.get_topic(info[0]["Topic"])[0][0] == info[0]["Representation"][0]


def test_topic_quality_is_that_of_the_units_tags(model):
    found = model.topic_quality(n_tags=2)
    topics = [[tag for tag, _ in own] for own in model.get_topics(2).values()]
    assert found["diversity"] == len({tag for own in topics for tag in own}) / (2 * len(topics))
    assert -1 <= found["coherence"] <= 1


def test_coherence_is_measured_in_the_pictures_tags(model):
    topics = [[tag for tag, _ in own] for own in model.get_topics(3).values()]
    expected = npmi_coherence(topics, model.corpus_.tags, 3).mean()
    assert model.topic_quality(n_tags=3)["coherence"] == pytest.approx(expected)


def test_coherence_of_a_collection_of_counts_is_measured_in_the_counts(tmp_path):
    """Its rows have no tags, and no two words would ever meet in them."""
    lines = ["sea,sand,tree", *("2,1,0" if row % 2 else "0,0,3" for row in range(30))]
    (tmp_path / "counts.csv").write_text("\n".join(lines))
    model = PictureModel(**QUICK).fit(tmp_path / "counts.csv")
    documents = [["sea", "sand"] if row % 2 else ["tree"] for row in range(30)]
    topics = [[tag for tag, _ in own] for own in model.get_topics(2).values()]
    found = model.topic_quality(n_tags=2)["coherence"]
    assert found == pytest.approx(npmi_coherence(topics, documents, 2).mean())
    assert found > -1


def test_without_tags_topics_are_told_by_visual_words_and_pictures(plain_model):
    info = plain_model.get_topic_info(n_pictures=3)
    assert sum(own["Count"] for own in info) == 100
    for own in info:
        assert own["Representation"] == []
        assert len(own["Visual_Words"]) == 4
        assert len(own["Representative_Docs"]) == 3
    assert info[0]["Name"].startswith(f"{info[0]['Topic']}_word{info[0]['Visual_Words'][0][0]}_")


def test_the_visual_words_are_those_that_a_unit_makes_most_probable(plain_model):
    V = plain_model.estimator_.parameters_["V"]  # (words, units); there is one region
    for own in plain_model.get_topic_info()[:5]:
        assert [word for word, _ in own["Visual_Words"]] == np.argsort(-V[:, own["Topic"]])[:4].tolist()


def test_typical_pictures_are_those_where_a_unit_stands_out_most(plain_model):
    [largest, *_] = plain_model.get_topic_info(n_pictures=4)
    rows = plain_model.corpus_
    activation = plain_model.estimator_.transform(rows.X, global_features=rows.global_features)
    order = np.argsort(-activation[:, largest["Topic"]])[:4]
    assert largest["Representative_Docs"] == [rows.file_names[row] for row in order]


def test_a_network_that_predicts_only_tags_names_no_visual_words(deep_model):
    assert deep_model.estimator_.predicts_tags_only
    assert all(own["Visual_Words"] == [] and own["Representation"] for own in deep_model.get_topic_info())


def test_without_tags_there_is_no_measure_of_tags(plain_model):
    assert plain_model.topic_quality() == {}
    assert set(map(len, plain_model.get_topics().values())) == {0}


def test_of_a_single_tag_there_is_no_coherence(tmp_path):
    model = PictureModel(**QUICK).fit(write_patterns(tmp_path / "photos", range(24), tags="one", label=""))
    found = model.topic_quality()
    assert list(found) == ["diversity"]
    assert found["diversity"] == 1 / len(model.get_topics())
