import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pictopic import DeepDocNADE
from pictopic.corpus.rows import Rows
from pictopic.models.deep_training import DeepTrainer, InputOptions, TrainingOptions, split_documents
from pictopic.models.inputs import Labels, no_labels
from pictopic.models.network import Network, parameter_shapes
from pictopic.models.tree import WordTree


def inputs(rho=1.0, n_annotation_words=0, normalize="none", n_features=0):
    return InputOptions(rho, n_annotation_words, normalize, np.zeros(n_features), np.ones(n_features))


def options(**changes):
    defaults = {
        "split": "ordering", "generative": 0.3, "word_dropout": 0.0, "multi_label": False, "dropout": 0.0,
        "solver": "sgd", "learning_rate": 0.1, "averaging": 0.0,
        "weight_decay": 0.0, "input_scale": 1.0, "pretrained": False, "n_jobs": 1, "device": "cpu",
    }  # fmt: skip
    return TrainingOptions(**(defaults | changes))


def make_trainer(rng, X, labels=None, features=None, tree=None, activation="tanh", given=None, dtype=np.float32, **o):
    given = given or inputs(n_features=0 if features is None else features.shape[1])
    n_words, n_classes = X.shape[1], 0 if labels is None else labels.indicator.shape[1]
    n_outputs = n_words if tree is None else n_words - 1
    shapes = parameter_shapes(n_words, (5, 4), n_outputs, n_classes, 0 if features is None else features.shape[1])
    arrays = {name: (0.7 * rng.normal(size=shape)).astype(dtype) for name, shape in shapes.items()}
    network = Network({name: torch.from_numpy(array) for name, array in arrays.items()}, activation, tree)
    documents = Rows(X.astype(np.int32), features, no_labels(len(X)) if labels is None else labels)
    return DeepTrainer(network, documents, given, options(**o))


# ---- splits ----------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_context_and_targets_make_up_the_weighted_document(data):
    n, m = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    X = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n * m, max_size=n * m)), np.int32).reshape(n, m)
    n_annotation = data.draw(st.integers(0, m))
    rho = data.draw(st.sampled_from([1.0, 2.5, 1000.0]))
    split = data.draw(st.sampled_from(["ordering", "per_word"]))
    context, targets, scale = split_documents(sparse.csr_array(X), split, inputs(rho, n_annotation), 3)
    weights = np.where(np.arange(m) >= m - n_annotation, rho, 1.0)
    np.testing.assert_allclose(context + targets, X * weights, rtol=1e-6)
    assert (context >= 0).all()
    assert (targets >= 0).all()
    words, rest = (X * weights).sum(axis=1), targets.sum(axis=1)
    np.testing.assert_allclose(scale, [w / r if r else 0 for w, r in zip(words, rest, strict=True)], rtol=1e-5)
    if split == "ordering":
        assert (rest[words > 0] > 0).all()


def test_annotation_weight_of_one_is_no_weight(rng):
    X = sparse.csr_array(rng.poisson(1, (9, 6)).astype(np.int32))
    weighted, plain = (split_documents(X, "ordering", given, 3) for given in (inputs(1.0, 4), inputs()))
    for a, b in zip(weighted, plain, strict=True):
        np.testing.assert_array_equal(a, b)


def exhaustive_loss(trainer, bag):
    """Mean over all orderings of -log p of a bag of words, one network pass for each prefix."""
    total, orderings = 0.0, list(itertools.permutations(bag))
    with torch.no_grad():
        for ordering in orderings:
            for k, word in enumerate(ordering):
                x = np.bincount(ordering[:k], minlength=trainer.network.W[0].shape[1]).astype(np.float32)
                h = trainer.network.hidden(torch.from_numpy(x[None]))
                total -= float(trainer.network.log_p_words(h)[0, word])
    return total / len(orderings)


@pytest.mark.parametrize("tree", [None, 3], ids=["softmax", "tree"])
def test_ordering_estimator_has_no_bias(rng, tree):
    bag, n = [0, 0, 1, 2], 40_000
    X = np.tile(np.bincount(bag, minlength=3), (n, 1))
    trainer = make_trainer(rng, X, tree=tree and WordTree(tree, 0))
    minibatch, seed = trainer.load(np.arange(n), 1)
    with torch.no_grad():
        estimate = float(trainer.losses(minibatch, seed)[0]) / n
    assert estimate == pytest.approx(exhaustive_loss(trainer, bag), rel=0.01)


def test_per_word_split_of_a_document_wholly_in_its_context_costs_nothing(rng):
    X = np.ones((200, 1), int)
    trainer = make_trainer(rng, X, split="per_word")
    minibatch, seed = trainer.load(np.arange(200), 1)
    assert {0.0, 1.0} == set(minibatch.scale.tolist())
    assert np.isfinite(trainer.learn(minibatch, seed)[0])


# ---- gradients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", [None, 6], ids=["softmax", "tree"])
@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_gradients_equal_finite_differences(rng, tree, multi_label, activation):
    X = rng.poisson(1, (8, 6))
    indicator = (rng.rand(8, 3) < 0.5 if multi_label else np.eye(3)[rng.randint(3, size=8)]).astype(np.uint8)
    labels = Labels(indicator, np.arange(8) != 2)
    trainer = make_trainer(
        rng, X, labels, rng.normal(size=(8, 2)), tree and WordTree(tree, 0), activation,
        inputs(1.5, 2, "std", 2), np.float64, multi_label=multi_label, dropout=0.3,
    )  # fmt: skip
    minibatch, seed = trainer.load(np.arange(8), 1)
    for name in ("x", "targets", "scale", "features", "labels"):
        setattr(minibatch, name, getattr(minibatch, name).double())
    masks = [mask.double() for mask in trainer.masks(8, 1)]
    trainer.masks = lambda n, seed, part: masks

    def loss():
        nll, class_loss = trainer.losses(minibatch, seed)
        return class_loss + trainer.options.generative * nll

    loss().backward()
    for parameter in trainer.network.parameters():
        flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
        for k in rng.choice(len(flat), min(6, len(flat)), replace=False):
            old, step = flat[k].item(), 1e-6
            with torch.no_grad():
                flat[k] = old + step
                above = loss().item()
                flat[k] = old - step
                below = loss().item()
                flat[k] = old
            assert gradient[k].item() == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-6)


def test_loss_of_unlabelled_rows_is_the_generative_term_only(rng):
    X = rng.poisson(1, (6, 5))
    labels = Labels(np.eye(2, dtype=np.uint8)[[0, 1, 0, 1, 0, 1]], np.zeros(6, bool))
    trainer = make_trainer(rng, X, labels)
    nll, class_loss = trainer.learn(*trainer.load(np.arange(6), 1))
    assert nll > 0
    assert class_loss == 0


def test_rows_in_one_pass_lose_as_much_as_in_two(rng):
    X = rng.poisson(1, (8, 6))
    labels = Labels(np.eye(3, dtype=np.uint8)[rng.randint(3, size=8)], np.arange(8) % 3 > 0)
    trainer = make_trainer(rng, X, labels, rng.normal(size=(8, 2)), dropout=0.5)
    minibatch, seed = trainer.load(np.arange(8), 1)
    with torch.no_grad():
        nll, class_loss = trainer.losses(minibatch, seed)
    masks, known = trainer.masks(8, seed), minibatch.known
    h = trainer.network.hidden(minibatch.x[:8], minibatch.features, masks)
    np.testing.assert_array_equal(minibatch.x[8:], (minibatch.x[:8] + minibatch.targets)[known])
    whole = trainer.network.hidden(minibatch.x[8:], minibatch.features[known], [m[known] for m in masks])
    by_hand = (minibatch.scale * trainer.network.word_losses(h, minibatch.targets)).sum()
    scores = trainer.network.class_scores(whole).log_softmax(1)
    assert nll.item() == pytest.approx(by_hand.item(), rel=1e-5)
    assert class_loss.item() == pytest.approx(-(scores * minibatch.labels).sum().item(), rel=1e-5)


def test_gradients_of_a_step_do_not_contain_those_of_the_step_before(rng):
    """Gradients are written into the same memory: a class without labels in a minibatch must have none."""
    X = rng.poisson(1, (8, 6))
    labels = Labels(np.eye(3, dtype=np.uint8)[rng.randint(3, size=8)], np.arange(8) < 4)
    trainer = make_trainer(rng, X, labels)
    trainer.learn(*trainer.load(np.arange(4), 1))
    assert trainer.network.U.grad.any()
    trainer.learn(*trainer.load(np.arange(4, 8), 1))
    assert not trainer.network.U.grad.any()


def test_fine_tuning_moves_classes_ten_times_and_the_rest_a_fifth_as_far(rng):
    X, labels = rng.poisson(1, (8, 6)), Labels(np.eye(3, dtype=np.uint8)[rng.randint(3, size=8)], np.ones(8, bool))
    moved = {}
    for pretrained in (False, True):
        trainer = make_trainer(np.random.RandomState(0), X, labels, pretrained=pretrained)
        before = {name: tensor.detach().clone() for name, tensor in trainer.network.named_parameters()}
        trainer.learn(*trainer.load(np.arange(8), 1))
        moved[pretrained] = {name: trainer.network.get_parameter(name).detach() - old for name, old in before.items()}
    for name, factor in {"U": 10, "d": 10, "W.0": 0.2, "W.1": 0.2, "V": 0.2, "c.0": 0.2}.items():
        np.testing.assert_allclose(moved[True][name], factor * moved[False][name], rtol=1e-2, atol=1e-6)


def test_share_of_units_dropped_is_as_asked(rng):
    trainer = make_trainer(rng, np.ones((4000, 3), int), dropout=0.25)
    for mask, size in zip(trainer.masks(4000, 3), (5, 4), strict=True):
        assert mask.shape == (4000, size)
        np.testing.assert_allclose(mask.unique(), [0, 1 / 0.75], rtol=1e-6)
        assert float((mask == 0).float().mean()) == pytest.approx(0.25, abs=0.02)


def test_some_words_are_left_out_whole_for_the_classes_only(rng):
    X = rng.poisson(3, (400, 20)) + 1
    labels = Labels(np.eye(2, dtype=np.uint8)[np.arange(400) % 2], np.ones(400, bool))
    minibatch, _ = make_trainer(rng, X, labels, word_dropout=0.25).load(np.arange(400), 3)
    whole = minibatch.x[400:].numpy()
    assert ((whole == 0) | (whole == X)).all()
    assert (whole == 0).mean() == pytest.approx(0.25, abs=0.03)
    np.testing.assert_array_equal(minibatch.x[:400] + minibatch.targets, X)


# ---- devices ---------------------------------------------------------------------------------------------------------


def test_all_tensors_live_on_the_device_asked_for(rng):
    trainer = make_trainer(rng, rng.poisson(1, (6, 5)), solver="adam", averaging=0.9, device="meta")
    tensors = [*trainer.network.parameters(), *trainer.solver.averages.values()]
    assert {tensor.device.type for tensor in tensors} == {"meta"}


# ---- features --------------------------------------------------------------------------------------------------------


def test_features_are_standardised_and_missing_ones_are_at_the_mean():
    given = InputOptions(1.0, 0, "none", np.array([2.0, 10.0]), np.array([1.0, 5.0]))
    found = given.standardize(np.array([[3.0, 0.0], [np.nan, np.nan], [1.0, np.nan]]), 3)
    np.testing.assert_allclose(found, [[1, -2], [0, 0], [-1, 0]])
    assert not given.standardize(None, 3).any()


def test_a_training_step_lowers_the_loss_of_a_model_of_one_document():
    model = DeepDocNADE(n_components=(6, 5), max_iter=60, random_state=0, validation_fraction=None, dropout=0.0)
    nll = model.fit([[3, 1, 0, 2]]).history_["nll"]
    assert np.mean(nll[-10:]) < np.mean(nll[:10])
