import numpy as np
import pytest

from pictopic import PictureModel
from tests.support.patterns import QUICK, write_patterns

LIKELIHOOD = ["log_likelihood_per_word", "log_likelihood_per_word_baseline"]


def write_counts(path, seed, n):
    """Words of two classes, as counts."""
    rng = np.random.RandomState(seed)
    lines = ["label,sea,sky,tree"]
    for row in range(n):
        first, other = rng.randint(1, 6), rng.randint(1, 4)
        lines.append(f"water,{first},{other},0" if row % 2 else f"land,0,{other},{first}")
    path.write_text("\n".join(lines))
    return path


def test_pictures_with_neither_tags_nor_classes_are_measured_by_their_words(plain_model, tmp_path):
    found = plain_model.evaluate(write_patterns(tmp_path / "more", range(300, 320), tags="", label=""))
    assert list(found) == LIKELIHOOD
    assert found[LIKELIHOOD[0]] > found[LIKELIHOOD[1]]


def test_what_cannot_be_measured_is_an_error(deep_model, tmp_path):
    with pytest.raises(ValueError, match="neither tags nor classes"):
        deep_model.evaluate(write_patterns(tmp_path / "more", range(300, 304), tags="", label=""))


def test_words_without_pictures_are_given_to_the_model(tmp_path):
    """It was asked about empty rows before, and right about half of two classes."""
    fitted = PictureModel(**QUICK).fit(write_counts(tmp_path / "counts.csv", 0, 60))
    found = fitted.evaluate(write_counts(tmp_path / "others.csv", 1, 40))
    assert list(found) == ["accuracy", "precision_at_10", *LIKELIHOOD]
    assert found["accuracy"] == 1


def test_words_that_are_told_apart_by_name_may_come_in_another_order(tmp_path):
    fitted = PictureModel(**QUICK).fit(write_counts(tmp_path / "counts.csv", 0, 60))
    (tmp_path / "a.csv").write_text("label,sea,sky,tree\nwater,4,1,0\nland,0,1,5\n")
    (tmp_path / "b.csv").write_text("label,tree,car,sea,sky\nwater,0,9,4,1\nland,5,9,0,1\n")
    assert fitted.evaluate(tmp_path / "b.csv") == pytest.approx(fitted.evaluate(tmp_path / "a.csv"))


def test_tags_are_not_predicted_from_themselves(tmp_path):
    lines = ["file_name,tags", *(f"{k}.jpg,{'sea;sky' if k % 2 else 'tree;grass'}" for k in range(40))]
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    fitted = PictureModel(**QUICK | {"features": ()}).fit(tmp_path, pictures="none")
    assert list(fitted.evaluate(tmp_path, pictures="none")) == LIKELIHOOD
