import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from scipy import sparse

from pictopic import Corpus, DeepDocNADE, SupDocNADE
from pictopic.corpus import store
from pictopic.words.tags import split_tags
from tests.corpus.conftest import WORDS, write_metadata, write_pictures


@pytest.fixture
def corpus(photos, tmp_path):
    return Corpus.build(photos, tmp_path / "corpus", **WORDS, split_column="part", features=("cld",))


@pytest.fixture
def sharded(photos, tmp_path, monkeypatch):
    """The same rows in several shards."""
    monkeypatch.setattr(store, "ROWS_PER_SHARD", 4)
    monkeypatch.setattr("pictopic.corpus.stages.PIECE", 2)
    return Corpus.build(photos, tmp_path / "sharded", **WORDS, split_column="part", features=("cld",))


# ---- contents --------------------------------------------------------------------------------------------------------


def test_an_opened_corpus_is_the_one_that_was_built(corpus):
    again = Corpus.open(corpus.folder)
    assert (again.X != corpus.X).nnz == 0
    assert again.tags == corpus.tags
    assert again.file_names == corpus.file_names == [f"{k}.jpg" for k in range(12)]
    assert again.options == corpus.options


def test_shards_change_nothing(corpus, sharded):
    assert len(list((sharded.folder / "shards").iterdir())) == 3
    assert (sharded.X != corpus.X).nnz == 0
    np.testing.assert_array_equal(np.asarray(sharded.global_features), np.asarray(corpus.global_features))
    assert sharded.file_names == corpus.file_names
    assert sharded.paths == corpus.paths


@pytest.mark.parametrize(
    "rows", [slice(2, 9, 3), [11, 0, 5, 5], np.arange(12) % 2 == 1, np.array([], int), slice(None)], ids=str
)
def test_a_part_has_the_rows_of_the_whole(sharded, rows):
    part, numbers = sharded[rows], np.arange(12)[rows]
    assert len(part) == len(numbers)
    np.testing.assert_array_equal(part.X.toarray(), sharded.X.toarray()[numbers])
    np.testing.assert_array_equal(np.asarray(part.global_features), np.asarray(sharded.global_features)[numbers])
    assert part.tags == [sharded.tags[k] for k in numbers]
    assert part.labels.tolist() == sharded.labels[numbers].tolist()


def test_parts_of_parts_are_parts(corpus):
    assert corpus[2:10][[1, 7]].file_names == ["3.jpg", "9.jpg"]


@pytest.mark.parametrize("rows", [[12], [-13]])
def test_rows_that_are_not_there_are_refused(corpus, rows):
    with pytest.raises(IndexError):
        corpus[rows]


def test_counts_of_one_shard_stay_on_disk(corpus):
    assert isinstance(corpus.X, sparse.csr_array)
    base = corpus.X.data
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_paths_lead_to_the_pictures(corpus):
    assert [Image.open(path).size for path in corpus.paths] == [(64, 48)] * 12


def test_pictures_are_found_after_corpus_and_pictures_have_moved_together(photos, corpus, tmp_path):
    (tmp_path / "new").mkdir()
    photos.rename(tmp_path / "new" / "photos")
    corpus.folder.rename(tmp_path / "new" / "corpus")
    assert all(path.is_file() for path in Corpus.open(tmp_path / "new" / "corpus").paths)


def test_sizes_are_those_of_the_files(photos, tmp_path):
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS, max_side=30)
    assert corpus.table(["width", "height"]).to_pylist() == [{"width": 64, "height": 48}] * 12


def labelled(tmp_path, lines):
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    return Corpus.build(tmp_path, tmp_path / "corpus", pictures="none")


def test_unknown_labels_are_none(tmp_path):
    corpus = labelled(tmp_path, ["tags,label", "a,x", "b,", "c,y"])
    assert corpus.labels.tolist() == ["x", None, "y"]


def test_several_labels_are_a_matrix(tmp_path):
    corpus = labelled(tmp_path, ["tags,labels", "a,x;y", "b,y", "c,[]"])
    assert corpus.classes == ["x", "y"]
    assert corpus.labels.tolist() == [[1, 1], [0, 1], [0, 0]]


def test_several_unknown_labels_are_nan(tmp_path):
    labels = labelled(tmp_path, ["tags,labels", "a,x;y", "b,"]).labels
    assert np.isnan(labels[1]).all()
    assert labels[0].tolist() == [1, 1]


def test_without_labels_there_are_none(tmp_path):
    assert labelled(tmp_path, ["tags", "a", "b"]).labels is None


def test_classes_are_those_of_the_whole_in_every_part(tmp_path):
    corpus = labelled(tmp_path, ["tags,labels", "a,x", "b,y"])
    assert corpus[[1]].labels.tolist() == [[0, 1]]


def test_models_learn_from_a_corpus(corpus):
    model = SupDocNADE(n_components=4, max_iter=2, random_state=0).fit(corpus.X, corpus.labels)
    assert model.predict(corpus.X).shape == (12,)


def test_deep_models_read_a_corpus_from_disk_as_from_memory(sharded):
    features = np.asarray(sharded.global_features)
    options = {"n_components": 4, "max_iter": 2, "random_state": 0}
    on_disk = DeepDocNADE(**options).fit(sharded, global_features=sharded.global_features)
    in_memory = DeepDocNADE(**options).fit(sharded.X, global_features=features)
    np.testing.assert_array_equal(
        on_disk.transform(sharded, global_features=sharded.global_features),
        in_memory.transform(sharded.X, global_features=features),
    )


# ---- splitting -------------------------------------------------------------------------------------------------------


def test_split_by_column_gives_its_parts(corpus):
    parts = corpus.split(by="split")
    assert {name: len(part) for name, part in parts.items()} == {"a": 8, "b": 4}
    assert parts["b"].file_names == ["0.jpg", "3.jpg", "6.jpg", "9.jpg"]


def test_split_by_label_gives_the_classes(corpus):
    assert {name: len(part) for name, part in corpus.split(by="label").items()} == {"round": 6, "square": 6}


def test_split_by_chance_is_stratified_and_complete(corpus):
    parts = corpus.split(1 / 3)
    assert sorted(parts["test"].labels.tolist()) == ["round"] * 2 + ["square"] * 2
    assert sorted(parts["train"].file_names + parts["test"].file_names) == sorted(corpus.file_names)


def test_near_duplicates_stay_on_one_side(photos, tmp_path):
    rows = write_pictures(photos, 12)
    for k in range(12):
        Image.open(photos / f"{k}.jpg").resize((80, 60)).save(photos / f"copy{k}.jpg", quality=60)
    write_metadata(photos, [*rows, *(row | {"file_name": f"copy{row['file_name']}"} for row in rows)])
    parts = Corpus.build(photos, tmp_path / "corpus", **WORDS).split(0.5, random_state=3)
    names = set(parts["test"].file_names)
    assert len(names) == 12
    assert all((f"{k}.jpg" in names) == (f"copy{k}.jpg" in names) for k in range(12))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either test_size or by"),
        ({"test_size": 0.5, "by": "split"}, "either test_size or by"),
        ({"test_size": 1.5}, "between 0 and 1"),
        ({"by": "colour"}, "'split' or 'label'"),
    ],
)
def test_wrong_splits_are_refused(corpus, options, message):
    with pytest.raises(ValueError, match=message):
        corpus.split(**options)


def test_a_split_that_no_picture_has_is_refused(photos, tmp_path):
    with pytest.raises(ValueError, match="split_column when you build"):
        Corpus.build(photos, tmp_path / "corpus", **WORDS).split(by="split")


# ---- changing --------------------------------------------------------------------------------------------------------


def more(tmp_path, n=5):
    folder = tmp_path / "more"
    rows = write_pictures(folder, n, first=100)
    rows[0]["tags"] = "all;new"
    write_metadata(folder, rows)
    return folder


def test_appended_pictures_are_counted_with_the_same_words(corpus, tmp_path):
    larger = corpus.append(more(tmp_path), n_jobs=1)
    extractor = corpus.extractor
    assert larger.file_names[12:] == [f"{k}.jpg" for k in range(100, 105)]
    expected = [extractor.count(extractor.open(tmp_path / "more" / name)) for name in larger.file_names[12:]]
    np.testing.assert_array_equal(larger.X[12:, :24].toarray(), expected)
    assert larger.vocabulary == corpus.vocabulary
    assert all(path.is_file() for path in larger.paths)


def test_new_tags_become_words_at_the_end_if_wanted(corpus, tmp_path):
    larger = corpus.append(more(tmp_path), n_jobs=1, new_tags=True)
    assert larger.vocabulary.annotations == (*corpus.vocabulary.annotations, "new")
    assert larger.X[:, [-1]].toarray().ravel().tolist() == [0] * 12 + [1] + [0] * 4
    assert (larger.X[:12, :-1] != corpus.X).nnz == 0


def test_pictures_that_are_there_are_not_appended_again(photos, corpus):
    again = corpus.append(photos, n_jobs=1)
    assert len(again) == 12
    assert set(again.skipped) == {(f"{k}.jpg", "already in the corpus") for k in range(12)}


def test_own_features_of_appended_pictures_are_missing_unless_given(photos, tmp_path):
    np.save(tmp_path / "own.npy", np.ones((12, 2)))
    corpus = Corpus.build(photos, tmp_path / "own", **WORDS, features_file=tmp_path / "own.npy")
    features = np.asarray(corpus.append(more(tmp_path), n_jobs=1).global_features)
    assert np.isnan(features[12:]).all()


def test_own_features_of_another_number_are_not_appended(photos, tmp_path):
    np.save(tmp_path / "two.npy", np.ones((12, 2)))
    np.save(tmp_path / "three.npy", np.ones((5, 3)))
    corpus = Corpus.build(photos, tmp_path / "own", **WORDS, features_file=tmp_path / "two.npy")
    with pytest.raises(ValueError, match="has 3 features, but the corpus has 2"):
        corpus.append(more(tmp_path), n_jobs=1, features_file=tmp_path / "three.npy")


def test_a_source_of_another_kind_is_not_appended(corpus, tmp_path):
    (tmp_path / "tags.csv").write_text("tags,label\nall,round\n")
    with pytest.raises(ValueError, match="was made from pictures; the new source is of another kind"):
        corpus.append(tmp_path / "tags.csv")


def test_removed_pictures_are_gone_and_the_others_unchanged(sharded):
    X, tags, features = sharded.X.toarray(), sharded.tags, np.asarray(sharded.global_features)
    smaller = sharded.remove(["5.jpg", "4.jpg", "11.jpg"])
    kept = [0, 1, 2, 3, 6, 7, 8, 9, 10]
    assert smaller.file_names == [f"{k}.jpg" for k in kept]
    np.testing.assert_array_equal(smaller.X.toarray(), X[kept])
    np.testing.assert_array_equal(np.asarray(smaller.global_features), features[kept])
    assert smaller.tags == [tags[k] for k in kept]
    assert len(list((sharded.folder / "shards").iterdir())) == 3


def test_removing_what_is_not_there_is_refused(corpus):
    with pytest.raises(ValueError, match=r"'99\.jpg' is not in the collection"):
        corpus.remove(["0.jpg", "99.jpg"])


def test_removing_everything_leaves_an_empty_corpus(corpus):
    empty = corpus.remove(corpus.file_names)
    assert len(empty) == 0
    assert empty.X.shape == (0, 28)


def test_a_corpus_that_grew_meanwhile_keeps_what_is_new(corpus, tmp_path):
    larger = corpus.append(more(tmp_path), n_jobs=1, new_tags=True)
    smaller = corpus.remove(["0.jpg"])
    np.testing.assert_array_equal(smaller.X.toarray(), larger.X.toarray()[1:])


def test_other_tags_give_what_a_corpus_built_with_them_has(photos, sharded, tmp_path):
    # Each tag as often as before, so that the words are in the same order.
    changed = {"4.jpg": ["tag2", "all"], "5.jpg": ["tag1"], "9.jpg": [], "11.jpg": ["tag2", "all", "tag0"]}
    rows = [
        row | {"tags": ";".join(changed.get(row["file_name"], split_tags(row["tags"])))}
        for row in write_pictures(photos, 12)
    ]
    write_metadata(photos, rows)
    expected = Corpus.build(
        photos, tmp_path / "anew", **WORDS, codebook=sharded.codebook, split_column="part", features=("cld",)
    )
    assert expected.vocabulary == sharded.vocabulary
    found = sharded.retag(changed)
    np.testing.assert_array_equal(found.X.toarray(), expected.X.toarray())
    assert found.table().equals(expected.table())
    np.testing.assert_array_equal(np.asarray(found.global_features), np.asarray(expected.global_features))
    assert found.paths == expected.paths
    assert Corpus.open(sharded.folder).tags == expected.tags


def test_tags_that_are_no_words_are_kept_but_not_counted(corpus):
    before = corpus.X.toarray()
    found = corpus.retag({"0.jpg": [*corpus.tags[0], "  New  THING ", "new thing"]})
    assert found.tags[0] == [*corpus.tags[0], "new thing"]
    np.testing.assert_array_equal(found.X.toarray(), before)
    assert found.vocabulary == corpus.vocabulary


def test_only_the_shards_of_other_tags_are_written_again(sharded):
    before = {path.name for path in (sharded.folder / "shards").iterdir()}
    sharded.retag({"5.jpg": ["all"], "0.jpg": sharded.tags[0]})
    after = {path.name for path in (sharded.folder / "shards").iterdir()}
    assert len(before & after) == 2
    assert len(after) == 3


def test_the_same_tags_change_nothing_on_disk(corpus):
    before = {path: path.stat().st_mtime_ns for path in corpus.folder.rglob("*")}
    corpus.retag({"0.jpg": corpus.tags[0]})
    assert {path: path.stat().st_mtime_ns for path in corpus.folder.rglob("*")} == before


def test_a_corpus_that_shares_its_files_is_not_changed_with_the_other(corpus, tmp_path):
    tags, X = corpus.tags, corpus.X.toarray()
    shutil.copytree(corpus.folder, tmp_path / "linked", copy_function=os.link)
    assert Corpus.open(tmp_path / "linked").retag({"0.jpg": []}).tags[0] == []
    again = Corpus.open(corpus.folder)
    assert again.tags == tags
    np.testing.assert_array_equal(again.X.toarray(), X)


def test_counts_that_came_without_tags_stay_when_a_tag_is_added(tmp_path):
    """As in MIR Flickr, where tags are counts only."""
    folder = tmp_path / "counts"
    corpus = Corpus.build(_tags_only(tmp_path), folder, pictures="none")
    table = pq.read_table(folder / "shards" / "000000" / "rows.parquet")
    place = table.schema.get_field_index("tags")
    nothing = pa.array([[] for _ in range(len(table))], pa.list_(pa.string()))
    pq.write_table(table.set_column(place, "tags", nothing), folder / "shards" / "000000" / "rows.parquet")
    expected = corpus.X.toarray()
    expected[0, corpus.vocabulary.index("boat")] = 1
    np.testing.assert_array_equal(Corpus.open(folder).retag({"1": ["boat"]}).X.toarray(), expected)


def _tags_only(folder):
    (folder / "metadata.csv").write_text("tags\nsea;sky\ntree;boat\n")
    return folder / "metadata.csv"


def test_other_tags_of_what_is_not_there_are_refused(corpus):
    with pytest.raises(ValueError, match=r"'99\.jpg' is not in the collection"):
        corpus.retag({"0.jpg": ["all"], "99.jpg": ["all"]})


def test_other_tags_that_were_cut_off_leave_the_corpus_as_it_was(sharded, monkeypatch):
    tags, X = sharded.tags, sharded.X.toarray()
    monkeypatch.setattr(store.Manifest, "write", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        sharded.retag({"5.jpg": []})
    monkeypatch.undo()
    again = Corpus.open(sharded.folder)
    assert again.tags == tags
    np.testing.assert_array_equal(again.X.toarray(), X)
    assert again.retag({"5.jpg": []}).tags[5] == []


@pytest.mark.parametrize("change", [lambda part: part.remove(["0.jpg"]), lambda part: part.retag({"0.jpg": []})])
def test_a_part_cannot_be_changed(corpus, change):
    with pytest.raises(ValueError, match="part of a corpus"):
        change(corpus[:3])


def test_a_change_that_was_cut_off_leaves_the_corpus_as_it_was(corpus, tmp_path, monkeypatch):
    before = corpus.X.toarray()
    monkeypatch.setattr(store.Manifest, "write", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        corpus.append(more(tmp_path), n_jobs=1, new_tags=True)
    monkeypatch.undo()
    again = Corpus.open(corpus.folder)
    np.testing.assert_array_equal(again.X.toarray(), before)
    assert again.vocabulary == corpus.vocabulary
    assert len(again.append(tmp_path / "more", n_jobs=1, new_tags=True, resume=True)) == 17


def test_an_exported_corpus_has_everything(sharded, tmp_path):
    sharded.export(tmp_path / "all.parquet")
    table = pq.read_table(tmp_path / "all.parquet")
    rows = table.to_pylist()
    dense = np.zeros(sharded.X.shape, int)
    for k, row in enumerate(rows):
        dense[k, row["word_ids"]] = row["word_counts"]
    np.testing.assert_array_equal(dense, sharded.X.toarray())
    assert [row["tags"] for row in rows] == sharded.tags
    np.testing.assert_array_equal([row["global_features"] for row in rows], np.asarray(sharded.global_features))


# ---- damage ----------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_no_corpus_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"is not a corpus: it has no corpus\.json"):
        Corpus.open(tmp_path)


@pytest.mark.parametrize("name", ["indptr.npy", "indices.npy", "counts.npy", "features.npy"])
def test_a_file_that_was_cut_off_is_found_out(corpus, name):
    path = corpus.folder / "shards" / "000000" / name
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="damaged"):
        Corpus.open(corpus.folder)


def test_a_newer_corpus_is_refused(corpus):
    path = corpus.folder / "corpus.json"
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 99'))
    with pytest.raises(ValueError, match="newer pictopic"):
        Corpus.open(corpus.folder)
