import pytest

from pictopic.picture_model.parts import check_figures, check_options, check_together

OPTIONS = {
    "preset": "scenes", "n_words": 12, "regions": "1x1", "features": ["cld"], "max_side": None, "model": "auto",
    "options": None, "random_state": 0,
}  # fmt: skip


def test_options_are_read_as_they_were_written():
    assert check_options(OPTIONS) == OPTIONS | {"features": ("cld",)}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("preset", "paintings", "'preset'"), ("n_words", 0, "'n_words'"), ("n_words", 2.5, "'n_words'"),
        ("regions", "2x", "2x"), ("features", ["taste"], "taste"), ("features", "cld", "'features'"),
        ("max_side", -1, "'max_side'"),
        ("model", "wide", "'model'"), ("options", {"dropout": float("inf")}, "'options'"),
        ("random_state", -1, "'random_state'"),
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_is_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        check_options(OPTIONS | {name: value})


@pytest.mark.parametrize("name", OPTIONS)
def test_a_missing_option_is_named(name):
    with pytest.raises(ValueError, match=name):
        check_options({key: value for key, value in OPTIONS.items() if key != name})


def test_figures_of_classes_and_tags_stand_beside_their_baselines():
    assert check_figures({"classes": 0.9, "classes_baseline": 0.5}) == {"classes": 0.9, "classes_baseline": 0.5}
    with pytest.raises(ValueError, match="'tags_baseline'"):
        check_figures({"tags": 0.5})
    with pytest.raises(ValueError, match="classes"):
        check_figures({"classes": float("nan"), "classes_baseline": 0.5})


def test_parts_of_one_model_go_together_and_those_of_two_do_not(model, plain_model):
    check_together(model.corpus_, model._fitted, model._index)
    with pytest.raises(ValueError, match="do not go together"):
        check_together(plain_model.corpus_, model._fitted, model._index)
