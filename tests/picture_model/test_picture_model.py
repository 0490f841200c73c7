import numpy as np
import pytest

from pictopic import Corpus, PictureModel
from pictopic.tasks.decisions import Decisions
from pictopic.tasks.fit import choose_parts
from tests.corpus.conftest import write_metadata
from tests.support.patterns import QUICK, SMALL_NETWORK, pattern, write_patterns


def test_summary_compares_with_trivial_answers(model):
    lines = model.summary()
    n = model._fitted.n_validation
    assert 12 <= n <= 18
    assert lines[0] == f"learnt from 100 rows with SupDocNADE; on {n} of them, which were held out first:"
    assert "always the same" in lines[1]
    assert "with the most frequent 5" in lines[2]
    assert model.figures_["classes"] > model.figures_["classes_baseline"]


@pytest.mark.parametrize(("n", "expected"), [(49, "SupDocNADE"), (50, "SupDeepDocNADE")])
def test_deep_is_chosen_for_all_but_tiny_collections(model, n, expected):
    assert PictureModel(**QUICK).fit(model.corpus_[:n]).summary()[0].split()[5].startswith(expected)


def test_the_best_head_on_validation_is_used_and_named(model):
    head = model._fitted.head
    assert set(head.scores) == {"the network's own", "RBF SVM"}
    assert head.scores[head.name] == max(head.scores.values())
    assert head.name in model.summary()[1]


def test_the_same_seed_gives_the_same_answers(model, patterns):
    again = PictureModel(**QUICK, model="shallow").fit(patterns)
    assert again.annotate(pattern(201)[0]) == model.annotate(pattern(201)[0])
    assert again.classify(pattern(201)[0]) == model.classify(pattern(201)[0])


def test_a_saved_model_gives_the_same_answers(model, tmp_path):
    model.save(tmp_path / "model")
    again = PictureModel.load(tmp_path / "model", n_jobs=1, verbose=0)
    picture = pattern(201)[0]
    assert again.annotate(picture, thresholds=True) == model.annotate(picture, thresholds=True)
    assert again.classify(picture) == model.classify(picture)
    assert again.search("3.png", k=5) == model.search("3.png", k=5)
    assert again.summary() == model.summary()


def test_a_saved_deep_model_gives_the_same_answers(deep_model, tmp_path):
    deep_model.save(tmp_path / "model")
    again = PictureModel.load(tmp_path / "model", n_jobs=1)
    assert again.annotate(pattern(201)[0]) == deep_model.annotate(pattern(201)[0])


def test_a_saved_model_replaces_an_older_one(model, tmp_path):
    model.save(tmp_path / "model")
    model.save(tmp_path / "model")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model.lock", "model"]


def test_something_else_is_not_overwritten(model, tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"precious")
    with pytest.raises(ValueError, match="something that is not a picture model"):
        model.save(tmp_path)


def test_a_failed_save_leaves_the_old_model(model, tmp_path, monkeypatch):
    model.save(tmp_path / "model")
    monkeypatch.setattr("pictopic.tasks.search.Index.save", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        model.save(tmp_path / "model")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model.lock", "model"]
    assert PictureModel.load(tmp_path / "model", n_jobs=1).classify(pattern(201)[0])


def test_pictures_that_have_moved_are_found_where_one_says(tmp_path):
    folder = write_patterns(tmp_path / "photos", range(24))
    PictureModel(**QUICK).fit(folder).save(tmp_path / "model")
    folder.rename(tmp_path / "elsewhere")
    model = PictureModel.load(tmp_path / "model", pictures=tmp_path / "elsewhere", n_jobs=1)
    assert len(model.search("3.png", k=3)) == 3


def test_evaluation_measures_what_is_known(deep_model, tmp_path):
    found = deep_model.evaluate(write_patterns(tmp_path / "more", range(300, 330)))
    assert found["accuracy"] > 0.8
    assert found["f_measure"] > 0.5
    assert found["n_plus"] == 4
    assert found["precision_at_10"] > 0.8


def test_evaluation_of_pictures_without_labels_is_of_tags_only(model, tmp_path):
    found = model.evaluate(write_patterns(tmp_path / "more", range(300, 310), label=""))
    words = ["log_likelihood_per_word", "log_likelihood_per_word_baseline"]
    assert sorted(found) == ["f_measure", *words, "n_plus", "precision", "recall"]


def test_update_takes_in_new_pictures(tmp_path):
    corpus = Corpus.build(
        write_patterns(tmp_path / "photos", range(40)), tmp_path / "corpus", n_words=12, regions="1x1", n_jobs=1
    )
    model = PictureModel(**QUICK).fit(corpus)
    model.update(write_patterns(tmp_path / "more", range(400, 420)), passes=2)
    assert len(model.corpus_) == 60
    assert "400.png" in [name for name, _ in model.search(pattern(400)[0], k=60)]


@pytest.fixture
def saved(tmp_path):
    """A model of forty pictures in a folder of its own, and the corpus it was made from."""
    source = write_patterns(tmp_path / "photos", range(40))
    corpus = Corpus.build(source, tmp_path / "corpus", n_words=12, regions="1x1", n_jobs=1)
    PictureModel(**QUICK, model="shallow").fit(corpus).save(tmp_path / "model")
    return tmp_path / "model", corpus


def test_update_takes_in_decisions(saved):
    folder, corpus = saved
    decisions = Decisions.beside(folder)
    decisions.add("0.png", "lines", "accepted")
    decisions.add("0.png", corpus.tags[0][0], "rejected")
    decisions.add("1.png", "unheard of", "accepted")
    decisions.add("gone.png", "lines", "accepted")
    model = PictureModel.load(folder, n_jobs=1, verbose=0).update(decisions=decisions.path, passes=2)
    assert model.corpus_.tags[0] == [corpus.tags[0][1], "lines"]
    assert model.corpus_.tags[1] == [*corpus.tags[1], "unheard of"]
    changed = model.corpus_.X.toarray() - corpus.X.toarray()
    lines, rejected = (corpus.vocabulary.index(tag) for tag in ("lines", corpus.tags[0][0]))
    assert sorted(zip(*np.nonzero(changed), strict=True)) == sorted([(0, lines), (0, rejected)])
    assert (changed[0, lines], changed[0, rejected]) == (1, -1)
    model.save(folder)
    again = PictureModel.load(folder, n_jobs=1, verbose=0)
    assert again.corpus_.tags == model.corpus_.tags
    assert len(decisions) == 4  # they are history


def test_update_with_decisions_leaves_a_corpus_that_shares_files_alone(saved):
    folder, corpus = saved
    tags, X = corpus.tags, corpus.X.toarray()
    Decisions.beside(folder).add("0.png", "lines", "accepted")
    PictureModel.load(folder, n_jobs=1, verbose=0).update(decisions=Decisions.beside(folder), passes=1)
    again = Corpus.open(corpus.folder)
    assert again.tags == tags
    np.testing.assert_array_equal(again.X.toarray(), X)


def test_update_takes_in_pictures_and_decisions_about_them_at_once(saved, tmp_path):
    folder, _ = saved
    Decisions.beside(folder).add("400.png", "lines", "accepted")
    more = write_patterns(tmp_path / "more", range(400, 404))
    model = PictureModel.load(folder, n_jobs=1, verbose=0)
    model.update(more, decisions=Decisions.beside(folder), passes=1)
    assert len(model.corpus_) == 44
    assert model.corpus_.tags[40] == [*pattern(400)[2], "lines"]


def test_what_is_learnt_is_what_was_decided(saved):
    """As many decisions that dots are lines as make the model believe it."""
    folder, corpus = saved
    decisions = Decisions.beside(folder)
    for name, label in zip(corpus.file_names, corpus.labels, strict=True):
        if label == "dots":
            decisions.add(name, "lines", "accepted")
            decisions.add(name, "spots", "rejected")
    model = PictureModel.load(folder, n_jobs=1, verbose=0)
    before = dict(model.annotate(pattern(200)[0], 4))
    after = dict(model.update(decisions=decisions, passes=50).annotate(pattern(200)[0], 4))
    assert before["spots"] > before["lines"]
    assert after["lines"] > after["spots"]


def test_update_without_anything_new_is_refused(model):
    with pytest.raises(ValueError, match="a source of new pictures, decisions about tags, or both"):
        model.update()


def test_update_refuses_options_of_a_source_that_is_not_there(model, tmp_path):
    with pytest.raises(TypeError, match="label_column is an option of new pictures"):
        model.update(decisions=tmp_path / "decisions.jsonl", label_column="class")


def test_topics_tell_what_goes_with_each_class(model):
    topics = {topic.label: topic for topic in model.topics()}
    assert sorted(topics) == ["dots", "stripes"]
    assert len(topics["dots"].units) == 3
    assert len(topics["dots"].visual_words) == 4
    weights = {name: dict(topic.tags) for name, topic in topics.items()}
    assert weights["stripes"]["lines"] > weights["stripes"]["spots"]
    assert weights["dots"]["spots"] > weights["dots"]["lines"]


def test_topics_of_several_layers_come_from_gradients(model):
    from pictopic import Rows, SupDeepDocNADE
    from pictopic.tasks.topics import class_topics

    rows, corpus = Rows.of(model.corpus_), model.corpus_
    estimator = SupDeepDocNADE(n_components=(20, 20), n_annotation_words=4, max_iter=60, random_state=0)
    estimator.set_params(dropout=0.0, learning_rate=0.01, validation_fraction=None)
    estimator.fit(rows)
    topics = class_topics(estimator, rows, corpus.vocabulary, ["dots", "stripes"], 3, 4, 4)
    assert topics[0].tags[0][0] == "spots"
    assert topics[1].tags[0][0] == "lines"


# ---- collections with something missing ------------------------------------------------------------------------------


def test_without_tags_there_are_classes_only(tmp_path):
    model = PictureModel(**QUICK).fit(write_patterns(tmp_path / "photos", range(24), tags=""))
    assert len(model.classify(pattern(201)[0])) == 2
    with pytest.raises(ValueError, match="the collection has no tags"):
        model.annotate(pattern(201)[0])


def test_without_labels_there_are_tags_only(tmp_path):
    model = PictureModel(**QUICK).fit(write_patterns(tmp_path / "photos", range(24), label=""))
    assert len(model.annotate(pattern(201)[0])) == 4
    for question in (model.classify, lambda _: model.topics()):
        with pytest.raises(ValueError, match="the collection has no classes"):
            question(pattern(201)[0])


def test_one_class_is_none_to_tell_apart(tmp_path):
    model = PictureModel(**QUICK).fit(write_patterns(tmp_path / "photos", range(24), label="same"))
    with pytest.raises(ValueError, match="no classes to tell apart"):
        model.classify(pattern(201)[0])


def test_too_few_pictures_to_hold_some_out_are_said(tmp_path):
    model = PictureModel(**QUICK).fit(write_patterns(tmp_path / "photos", range(8)))
    assert model.summary()[1:] == ["accuracy is unknown: too few pictures to hold any out"]
    assert len(model.classify(pattern(201)[0])) == 2


def test_without_tags_and_classes_the_summary_is_of_the_words(plain_model, tmp_path):
    figures = plain_model.figures_
    assert sorted(figures) == ["log_likelihood_per_word", "log_likelihood_per_word_baseline"]
    value, baseline = figures["log_likelihood_per_word"], figures["log_likelihood_per_word_baseline"]
    assert -np.log(12) < baseline < value < 0  # of twelve words
    first, words = plain_model.summary()
    assert first.endswith("on 15 of them, which were held out first:")
    assert words == f"  words    {value:6.2f} log-likelihood per word, in nats ({baseline:.2f} by frequency alone)"
    plain_model.save(tmp_path / "model")
    assert PictureModel.load(tmp_path / "model", verbose=0).summary() == [first, words]


def test_the_unigram_model_counts_the_words_of_the_training_rows(plain_model):
    train, held_out = choose_parts(plain_model.corpus_)
    X = plain_model.corpus_.X.toarray()
    p = (X[train].sum(axis=0) + 1) / (X[train].sum() + X.shape[1])
    expected = sum(np.log(p[word]) for row in X[held_out] for word, count in enumerate(row) for _ in range(count))
    assert plain_model.figures_["log_likelihood_per_word_baseline"] == pytest.approx(expected / X[held_out].sum())


def test_held_out_pictures_that_nothing_is_known_of_are_said(tmp_path):
    folder = write_patterns(tmp_path / "photos", range(60))
    rows = [
        {
            "file_name": f"{k}.png",
            "tags": ";".join(pattern(k)[2]) if k < 40 else "",
            "part": "train" if k < 40 else "val",
        }
        for k in range(60)
    ]
    write_metadata(folder, rows)
    model = PictureModel(**QUICK, model="deep").fit(folder, split_column="part")
    assert model.summary()[1:] == [
        "accuracy is unknown: the held-out pictures have neither tags nor classes to compare with"
    ]


def test_several_labels_a_picture(tmp_path):
    folder = write_patterns(tmp_path / "photos", range(100))
    rows = [{"file_name": f"{k}.png", "tags": "", "labels": ";".join(pattern(k)[2])} for k in range(100)]
    write_metadata(folder, rows)
    model = PictureModel(**QUICK, model="deep", options=SMALL_NETWORK).fit(folder)
    found = dict(model.classify(pattern(201)[0]))
    assert sorted(found) == ["blue", "lines", "red", "spots"]
    assert found["lines"] > 0.5 > found["spots"]


def test_nothing_to_learn_from_is_said(tmp_path):
    (tmp_path / "metadata.csv").write_text("tags,label\n,a\n,b\n")
    with pytest.raises(ValueError, match="there is nothing to learn from"):
        PictureModel(**QUICK).fit(tmp_path, pictures="none")


def test_the_test_part_of_a_split_is_not_learnt_from(tmp_path):
    folder = write_patterns(tmp_path / "photos", range(100))
    rows = [
        {"file_name": f"{k}.png", "tags": ";".join(pattern(k)[2]), "label": pattern(k)[1], "part": part}
        for k, part in ((k, ["train", "train", "val", "test"][k // 2 % 4]) for k in range(100))
    ]
    write_metadata(folder, rows)
    model = PictureModel(**QUICK, options=SMALL_NETWORK | {"max_iter": 1}).fit(folder, split_column="part")
    assert model._fitted.n_validation == sum(row["part"] == "val" for row in rows)


def test_an_unknown_kind_of_model_is_refused():
    with pytest.raises(ValueError, match="'auto', 'shallow' or 'deep'"):
        PictureModel(model="wide")


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a picture model"):
        PictureModel.load(tmp_path)
