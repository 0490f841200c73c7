import numpy as np
import pytest
from sklearn.base import clone

import pictopic
from pictopic import DeepDocNADE, SupDeepDocNADE
from pictopic.paper.models import PublishedDeepDocNADE, PublishedSupDeepDocNADE

PUBLISHED = {PublishedDeepDocNADE: DeepDocNADE, PublishedSupDeepDocNADE: SupDeepDocNADE}
START = {"n_components": 4, "max_iter": 1, "learning_rate": 1e-12, "averaging": None, "random_state": 0}


@pytest.mark.parametrize("kind", PUBLISHED)
def test_biases_start_at_zero_and_those_of_other_models_do_not(topics, kind):
    assert np.abs(clone(kind(**START)).fit(*topics).parameters_["b"]).max() < 1e-9
    assert np.abs(PUBLISHED[kind](**START).fit(*topics).parameters_["b"]).max() > 0.1


@pytest.mark.parametrize("kind", PUBLISHED)
def test_saved_it_is_a_usual_model_with_the_same_answers(topics, tmp_path, kind):
    model = kind(n_components=4, max_iter=2, random_state=0).fit(*topics)
    model.save(tmp_path / "model")
    loaded = pictopic.load(tmp_path / "model")
    assert type(loaded) is PUBLISHED[kind]
    assert loaded.solver == "sgd"
    np.testing.assert_array_equal(loaded.transform(topics[0]), model.transform(topics[0]))
