import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from pictopic import CountsOnDisk, DeepDocNADE, DocNADE, SupDeepDocNADE
from pictopic.models.deep_model import DeepModel
from tests.support.small_deep import QUICK, fitted, small

KINDS = [DeepDocNADE, SupDeepDocNADE]


@parametrize_with_checks([
    DeepDocNADE(n_components=(32, 16), max_iter=20),
    SupDeepDocNADE(n_components=(32, 16), max_iter=20, learning_rate=0.01),
    SupDeepDocNADE(n_components=16, max_iter=20, learning_rate=0.01, output="tree", split="per_word"),
])  # fmt: skip
def test_scikit_learn_check(estimator, check):
    check(estimator)


# ---- several modalities ----------------------------------------------------------------------------------------------


def multimodal(rng, n=400):
    """Two kinds of pictures: 6 visual words (many), 4 tags (few), 3 global features, all of which tell the kind."""
    y = np.arange(n) % 2
    visual = rng.poisson(np.where(y[:, None] == np.repeat([0, 1], 3), 12, 2))
    tags = rng.poisson(np.where(y[:, None] == np.repeat([0, 1], 2), 0.8, 0.05))
    features = rng.normal(size=(n, 3)) + 3 * y[:, None]
    return np.hstack([visual, tags]), features, y


def test_balanced_weight_is_visual_over_annotation_words(rng):
    X, _, _ = multimodal(rng)
    model = small(n_annotation_words=4, validation_fraction=None).fit(X)
    assert model.annotation_weight_ == pytest.approx(X[:, :6].sum() / X[:, 6:].sum())


@pytest.mark.parametrize("n_annotation_words", [0, 10])
def test_balanced_weight_is_one_where_a_modality_is_absent(rng, n_annotation_words):
    X, _, _ = multimodal(rng)
    assert small(n_annotation_words=n_annotation_words).fit(X).annotation_weight_ == 1.0


@pytest.mark.parametrize(("n_words", "expected"), [(99, "none"), (100, "std")])
def test_counts_over_few_words_are_not_normalised(rng, n_words, expected):
    assert small(max_iter=1).fit(rng.poisson(1, (20, n_words))).normalize_ == expected


def test_plain_counts_times_the_input_scale_are_as_large_as_normalised_ones(rng):
    X, _, _ = multimodal(rng)
    model = small(n_annotation_words=4, normalize="none", validation_fraction=None).fit(X)
    weighted = X * np.where(np.arange(10) < 6, 1, model.annotation_weight_)
    norms = np.sqrt((weighted**2).sum(axis=1).mean())
    assert model.input_scale_ * norms == pytest.approx(np.sqrt(10))


@pytest.mark.parametrize("given", ["visual words", "tags", "features", "everything"])
def test_classes_are_predicted_from_any_modality(rng, given):
    X, features, y = multimodal(rng)
    model = small(SupDeepDocNADE, n_components=(32, 16), n_annotation_words=4, max_iter=60, learning_rate=0.01)
    model.fit(X, y, global_features=features)
    new, new_features, new_y = multimodal(np.random.RandomState(1))
    if given in ("tags", "features"):
        new[:, :6] = 0
    if given in ("visual words", "features"):
        new[:, 6:] = 0
    told = new.any(axis=1) if given == "tags" else np.ones(len(new), bool)
    f = new_features[told] if given in ("features", "everything") else None
    assert model.score(new[told], new_y[told], global_features=f) > 0.8


def test_tags_are_predicted_from_pictures_and_pictures_from_tags(rng):
    X, features, _ = multimodal(rng)
    model = small(n_components=(32, 16), n_annotation_words=4, max_iter=60, learning_rate=0.01)
    model.fit(X, global_features=features)
    pictures = np.array([[12, 12, 12, 2, 2, 2, 0, 0, 0, 0], [2, 2, 2, 12, 12, 12, 0, 0, 0, 0]])
    tags = np.array([[0, 0, 0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]])
    p = model.next_word_proba(pictures, columns=[6, 7, 8, 9])
    assert p[0, :2].sum() > p[0, 2:].sum()
    assert p[1, :2].sum() < p[1, 2:].sum()
    p = model.next_word_proba(tags, columns=range(6))
    assert p[0, :3].sum() > p[0, 3:].sum()
    assert p[1, :3].sum() < p[1, 3:].sum()
    scores = np.array([[model.score_modality(x[None], t[None])[0] for t in tags] for x in pictures])
    assert scores[0, 0] > scores[0, 1]
    assert scores[1, 1] > scores[1, 0]


# ---- global features -------------------------------------------------------------------------------------------------


def test_features_are_scaled_by_what_was_seen_in_training(rng, topics):
    features = rng.normal(3, 5, (80, 2))
    features[::4] = np.nan
    model = fitted(topics, features=features, validation_fraction=None)
    np.testing.assert_allclose(model.feature_mean_, np.nanmean(features, axis=0), rtol=1e-5)
    np.testing.assert_allclose(model.feature_scale_, np.nanstd(features, axis=0), rtol=1e-5)


def test_missing_features_are_the_mean(rng, topics):
    X = topics[0]
    model = fitted(topics, features=rng.normal(3, 5, (80, 2)), validation_fraction=None)
    mean = np.tile(model.feature_mean_, (80, 1))
    np.testing.assert_allclose(model.transform(X), model.transform(X, global_features=mean), atol=1e-6)
    np.testing.assert_allclose(model.transform(X), model.transform(X, global_features=mean * np.nan), atol=1e-6)


def test_a_constant_feature_does_no_harm(topics):
    model = fitted(topics, features=np.full((80, 1), 7.0))
    assert np.isfinite(model.transform(topics[0], global_features=np.full((80, 1), 7.0))).all()


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones((79, 2)), "X has 80 rows, but global_features has 79"),
        (np.ones((80, 3)), "global_features has 3 columns, but DeepDocNADE was fitted with 2"),
        (np.where(np.eye(80, 2) > 0, np.inf, 0), "infinity in row 0, column 0"),
    ],
)
def test_wrong_features_are_refused(rng, topics, features, message):
    model = fitted(topics, features=rng.normal(size=(80, 2)))
    with pytest.raises(ValueError, match=message):
        model.transform(topics[0], global_features=features)


def test_features_are_routed_through_cross_validation(rng):
    X, features, y = multimodal(rng, 120)
    with config_context(enable_metadata_routing=True):
        model = small(SupDeepDocNADE, n_components=16, max_iter=30, **QUICK)
        model.set_fit_request(global_features=True).set_score_request(global_features=True)
        scores = cross_val_score(model, 0 * X + 1, y, params={"global_features": features}, cv=3)
    assert scores.mean() > 0.8


# ---- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_same_random_state_gives_the_same_model_bit_for_bit(topics, kind):
    one, two = fitted(topics, kind), fitted(topics, kind)
    for name, array in one.parameters_.items():
        np.testing.assert_array_equal(array, two.parameters_[name])


def test_averaged_parameters_are_the_ones_used(topics):
    options = {"max_iter": 2, "batch_size": 80, "validation_fraction": None, "solver": "sgd", "dropout": 0.0}
    steps = [fitted(topics, averaging=None, **(options | {"max_iter": n})).parameters_["V"] for n in (1, 2)]
    first = fitted(topics, averaging=None, learning_rate=1e-12, **options).parameters_["V"]
    average = 0.4 * first + 0.6 * steps[0]  # decay min(0.998, (1 + t) / (4 + t)) at steps 1 and 2
    average = 0.5 * average + 0.5 * steps[1]
    np.testing.assert_allclose(fitted(topics, **options).parameters_["V"], average, atol=1e-6)


def test_two_kinds_of_documents_are_told_apart(topics):
    X, y = topics
    model = small(SupDeepDocNADE, max_iter=100, **QUICK).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("metric", ["loss", "accuracy", "map"])
def test_best_parameters_by_the_validation_metric_are_kept(topics, metric):
    X, y = topics
    Y = np.eye(2, dtype=int)[y]
    model = small(SupDeepDocNADE, max_iter=8, validation_metric=metric, n_iter_no_change=3)
    model.fit(X, Y, X_val=X, y_val=Y)
    scores = model.history_["validation_score"]
    assert model.best_validation_score_ == max(scores)
    p = model.predict_proba(X)
    if metric == "accuracy":
        assert max(scores) == pytest.approx(((p > 0.5) == Y).mean())


def test_several_classes_a_document(topics):
    X, y = topics
    Y = np.stack([y, 1 - y, np.ones_like(y)], axis=1)
    model = small(SupDeepDocNADE, max_iter=100, **QUICK).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert (model.predict(X) == Y).mean() > 0.9


def test_rows_without_labels_teach_the_words(topics):
    X, y = topics
    labels = y.astype(float)
    labels[40:] = np.nan
    model = small(SupDeepDocNADE, max_iter=60, **QUICK).fit(X, labels)
    assert model.score(X[40:], y[40:]) > 0.8


def test_fine_tuning_starts_from_the_pretrained_model_with_fresh_classes(topics):
    X, y = topics
    pretrained = fitted(topics, max_iter=30)
    tuned = small(SupDeepDocNADE, init=pretrained, max_iter=1, learning_rate=1e-9, solver="adam").fit(X, y)
    for name in ("W.0", "W.1", "c.0", "c.1", "V", "b"):
        np.testing.assert_allclose(tuned.parameters_[name], pretrained.parameters_[name], atol=1e-6)
    assert tuned.parameters_["U"].shape == (2, 5)
    again = small(SupDeepDocNADE, init=tuned, max_iter=1, learning_rate=1e-9, solver="adam", random_state=1).fit(X, y)
    assert not np.allclose(again.parameters_["U"], tuned.parameters_["U"], atol=1e-3)


def test_fine_tuning_takes_over_the_scale_of_features_and_the_annotation_weight(rng):
    X, features, y = multimodal(rng)
    pretrained = small(n_annotation_words=4).fit(X, global_features=features)
    tuned = small(SupDeepDocNADE, init=pretrained, n_annotation_words=4).fit(
        X[:40], y[:40], global_features=features[:40]
    )
    np.testing.assert_array_equal(tuned.feature_mean_, pretrained.feature_mean_)
    assert tuned.annotation_weight_ == pretrained.annotation_weight_


def test_fine_tuning_without_the_features_of_pretraining_takes_them_as_missing(rng):
    X, features, y = multimodal(rng)
    pretrained = small(n_annotation_words=4).fit(X, global_features=features)
    tuned = small(SupDeepDocNADE, init=pretrained, n_annotation_words=4).fit(X, y)
    assert tuned.transform(X, global_features=features).shape == (400, 5)


def test_a_pretrained_model_can_be_given_as_a_folder(topics, tmp_path):
    X, y = topics
    pretrained = fitted(topics)
    pretrained.save(tmp_path / "model")
    one = small(SupDeepDocNADE, init=pretrained).fit(X, y)
    two = small(SupDeepDocNADE, init=tmp_path / "model").fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_a_clone_keeps_its_pretrained_model(topics):
    pretrained = fitted(topics)
    assert clone(small(SupDeepDocNADE, init=pretrained)).init is pretrained


def test_a_pretrained_model_of_another_shape_is_refused(topics):
    X, y = topics
    with pytest.raises(ValueError, match="init has parameters of other shapes"):
        small(SupDeepDocNADE, n_components=7, init=fitted(topics)).fit(X, y)
    with pytest.raises(ValueError, match="init must be a fitted DeepDocNADE"):
        small(SupDeepDocNADE, init=DocNADE(max_iter=1).fit(X)).fit(X, y)


def test_partial_fit_goes_on_where_it_was(topics):
    X, y = topics
    model = small(SupDeepDocNADE, **QUICK)
    for _ in range(60):
        model.partial_fit(X, y)
    assert model.n_iter_ == 60
    assert model.score(X, y) > 0.9
    assert len(model.history_["nll"]) == 60


def test_warm_start_goes_on_from_the_last_fit(topics):
    model = fitted(topics, max_iter=40, validation_fraction=None)
    model.set_params(warm_start=True, max_iter=1)
    before = model.history_["nll"][-1]
    assert model.fit(topics[0]).history_["nll"][0] == pytest.approx(before, abs=0.3)
    with pytest.raises(ValueError, match="warm_start: the model has"):
        model.set_params(n_components=3).fit(topics[0])


# ---- the estimators' world -------------------------------------------------------------------------------------------


def test_annotation_weight_is_chosen_by_grid_search(rng):
    X, _, y = multimodal(rng, 120)
    search = GridSearchCV(
        small(SupDeepDocNADE, n_annotation_words=4, max_iter=20), {"annotation_weight": [1, "balanced"]}, cv=2
    ).fit(X, y)
    assert search.best_params_["annotation_weight"] in (1, "balanced")


def test_representation_feeds_a_pipeline(topics):
    X, y = topics
    assert make_pipeline(small(max_iter=40, **QUICK), LogisticRegression()).fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("sizes", [(40, 30), (33,)])
def test_a_row_is_represented_the_same_in_any_company(rng, sizes, n_jobs):
    X = rng.poisson(1, (700, 50))
    model = small(n_components=sizes, max_iter=1, n_jobs=n_jobs).fit(X)
    together = model.transform(X)
    for rows in ([0], [5, 6, 7], [699, 3], range(100, 150)):
        np.testing.assert_array_equal(model.transform(X[list(rows)]), together[list(rows)])


def test_counts_on_disk_give_the_same_model_as_in_memory(rng, topics, tmp_path):
    X, y = topics
    features = rng.normal(size=(80, 2)).astype(np.float32)
    np.save(tmp_path / "features.npy", features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    counts = CountsOnDisk.write(tmp_path / "counts", [sparse.csr_array(X)], 12)
    one = small(SupDeepDocNADE).fit(X, y, global_features=features)
    two = small(SupDeepDocNADE).fit(counts, y, global_features=mapped)
    np.testing.assert_array_equal(
        one.predict_proba(X, global_features=features), two.predict_proba(counts, global_features=mapped)
    )
    assert one.data_fingerprint_ == two.data_fingerprint_


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_corpus_can_be_learnt(data):
    n, m = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 6))
    X = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n * m, max_size=n * m))).reshape(n, m)
    X[0, 0] += 1
    model = DeepDocNADE(
        n_components=data.draw(st.sampled_from([1, (3, 2)])), max_iter=2, random_state=0,
        n_annotation_words=data.draw(st.integers(0, m)), output=data.draw(st.sampled_from(["softmax", "tree"])),
        split=data.draw(st.sampled_from(["ordering", "per_word"])), validation_fraction=None,
        normalize=data.draw(st.sampled_from(["std", "sqrt", "none"])),
    ).fit(X)  # fmt: skip
    assert np.isfinite(model.transform(X)).all()
    assert (model.log_likelihood(X) <= 1e-6).all()
    np.testing.assert_allclose(model.next_word_proba(X).sum(axis=1), 1, atol=1e-5)


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": ()}, "n_components must be a whole number above 0, or several"),
        ({"n_components": (3, 0)}, "n_components must be a whole number above 0, or several"),
        ({"n_annotation_words": 13}, "n_annotation_words=13, but X has 12 columns only"),
        ({"split": "half"}, "split"),
        ({"annotation_weight": 0}, "annotation_weight"),
    ],
)
def test_wrong_options_are_refused(topics, options, message):
    with pytest.raises(ValueError, match=message):
        fitted(topics, **options)


def test_counts_that_are_no_counts_are_refused_with_their_place(topics):
    X = topics[0].astype(float)
    X[3, 2] = 0.5
    with pytest.raises(ValueError, match=r"has a fraction \(row 3, column 2: 0\.5\)"):
        small().fit(X)


def test_documents_without_any_words_are_refused():
    with pytest.raises(ValueError, match="every row is empty"):
        small().fit(np.zeros((4, 3), int))


def test_an_empty_document_has_a_representation(topics):
    assert np.isfinite(fitted(topics).transform(np.zeros((1, 12), int))).all()


def test_torch_threads_are_as_before(topics):
    before = torch.get_num_threads()
    fitted(topics, n_jobs=1).transform(topics[0])
    assert torch.get_num_threads() == before


def test_pictures_first_learns_to_tag_pictures_without_tags(rng):
    X, features, y = multimodal(rng)
    visual = np.hstack([X[:, :6], np.zeros((len(X), 4), int)])
    model = small(n_annotation_words=4, max_iter=60, split="pictures_first", **QUICK).fit(
        X[:300], global_features=features[:300]
    )
    p = model.next_word_proba(visual[300:], columns=range(6, 10), global_features=features[300:])
    np.testing.assert_array_equal(p[:, 2:].sum(axis=1) > p[:, :2].sum(axis=1), y[300:])


def test_pictures_first_is_validated_on_pictures_without_tags(rng):
    X, _, y = multimodal(rng)
    X[:, :6] = 1  # only the tags tell the class, and pictures have none
    model = small(SupDeepDocNADE, n_annotation_words=4, max_iter=10, split="pictures_first", **QUICK)
    model.set_params(validation_metric="accuracy").fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    assert max(model.history_["validation_score"]) <= 0.55


# ---- the network -----------------------------------------------------------------------------------------------------


def test_the_network_of_a_fitted_model_is_built_once(topics, monkeypatch):
    model, built = fitted(topics), []
    build = DeepModel._build_network
    monkeypatch.setattr(DeepModel, "_build_network", lambda self, *given: built.append(1) or build(self, *given))
    for _ in range(3):
        model.transform(topics[0])
        model.next_word_proba(topics[0])
    assert len(built) == 1


def test_other_parameters_are_used_at_once(topics):
    model = fitted(topics)
    model.transform(topics[0])
    model.parameters_["c.1"] = np.full_like(model.parameters_["c.1"], 50.0)
    assert (model.transform(topics[0]) > 40).all()


def test_a_model_that_is_fitted_again_has_another_network(topics):
    model = fitted(topics)
    before = model.transform(topics[0])
    again = model.set_params(random_state=5).fit(*topics).transform(topics[0])
    assert not np.array_equal(before, again)
