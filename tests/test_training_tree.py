"""A tree of samples: every prediction from its own context, and the loss of the samples one by one."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.training.prefix_tree import PrefixTree, plant, tokens_saved
from anthrolab.training.tokens import Encoded

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # tiny models: more threads only wait for one another

from anthrolab.training import tree_attention  # noqa: E402
from anthrolab.training.loss import completion_loss, padded_batch, tree_batch, windows_of  # noqa: E402
from tests.training_for_tests import tiny_model  # noqa: E402

ids = st.lists(st.integers(6, 9), min_size=1, max_size=7).map(tuple)
samples = st.lists(st.builds(Encoded, st.uuids().map(str), st.sampled_from("ab"), ids, ids), min_size=1, max_size=9)


def path(tree: PrefixTree, node: int) -> list[int]:
    """The tokens from the root to a node."""
    found: list[int] = []
    while node >= 0:
        found.append(tree.tokens[node])
        node = tree.parents[node]
    return found[::-1]


@settings(deadline=None)
@given(samples, st.integers(3, 40))
def test_every_completion_token_is_predicted_once_from_exactly_its_own_context(some: list[Encoded], budget: int) -> None:
    trees = plant(some, budget)
    wanted = sorted(
        ([*s.prompt, *s.completion[:k]], s.completion[k]) for s in some for k in range(len(s.completion))
    )
    assert sorted((path(tree, node), token) for tree in trees for node, token in tree.asked) == wanted
    assert sorted(i for tree in trees for i in tree.samples) == sorted(s.id for s in some)


@settings(deadline=None)
@given(samples, st.integers(3, 40))
def test_trees_keep_to_their_budget_and_to_one_group(some: list[Encoded], budget: int) -> None:
    groups = {s.id: s.group for s in some}
    for tree in plant(some, budget):
        assert len(tree) <= budget or len(tree.samples) == 1
        assert len({groups[i] for i in tree.samples}) == 1
        assert all(parent < node for node, parent in enumerate(tree.parents))


def test_what_two_samples_share_stands_once() -> None:
    one = Encoded("1", "a", (5, 6, 7), (8, 9))
    two = Encoded("2", "a", (5, 6, 7), (8, 4))
    (tree,) = plant([one, two], 100)
    assert tree.tokens == [5, 6, 7, 8, 9, 4]
    assert tree.parents == [-1, 0, 1, 2, 3, 3]
    assert tree.depths == [0, 1, 2, 3, 4, 4]
    assert tree.asked == [(2, 8), (3, 9), (2, 8), (3, 4)]
    assert tokens_saved([one, two], [tree]) == pytest.approx(10 / 6)


@settings(deadline=None)
@given(samples, st.sampled_from([None, 1, 2, 3]))
def test_a_row_sees_its_nearest_ancestors_and_nothing_else(some: list[Encoded], window: int | None) -> None:
    (tree, *_) = plant([replace(s, group="a") for s in some], 10**6)
    seen = {node: set() for node in range(len(tree))}  # type: ignore[var-annotated]
    for block in tree_attention.blocks_of(tree, window):
        for row, sees in zip(range(block.first, block.last), block.seen, strict=True):
            seen[row] = set(block.keys[sees].tolist())
    for node in range(len(tree)):
        ancestors, at = [], node
        while at >= 0:
            ancestors.append(at)
            at = tree.parents[at]
        assert seen[node] == set(ancestors[:window])


@cache
def models(window: int):  # type: ignore[no-untyped-def]
    """The same model twice: with its own attention, and with that of the tree."""
    plain, fast = tiny_model(window).eval(), tiny_model(window).eval()
    fast.set_attn_implementation(tree_attention.NAME)
    return plain, fast


def _hand_loss(model, some):  # type: ignore[no-untyped-def]
    """The mean of -log p over all completion tokens, each sample by itself, from the model's own scores."""
    total, count = torch.zeros(()), 0
    for s in some:
        scores = model(input_ids=torch.tensor([[*s.prompt, *s.completion]])).logits[0].log_softmax(-1)
        for k, token in enumerate(s.completion):
            if len(s.prompt) + k > 0:
                total = total - scores[len(s.prompt) + k - 1, token]
                count += 1
    return total / count


@settings(max_examples=8, deadline=None)
@given(samples, st.sampled_from([2, 5]))
def test_loss_and_gradient_are_those_of_the_samples_one_by_one(some: list[Encoded], window: int) -> None:
    tree_attention.register()
    few = [replace(s, group="a") for s in some]
    plain, fast = models(window)
    plain.zero_grad()
    assert windows_of(fast) == {window, None}
    (tree,) = plant(few, 10**6)
    expected = _hand_loss(plain, few)
    expected.backward()
    for batch in (tree_batch(tree, windows_of(fast)), padded_batch(few, 0)):
        fast.zero_grad()
        loss = completion_loss(fast, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        assert loss.item() == pytest.approx(expected.item(), abs=1e-5)
        for (name, a), (_, b) in zip(plain.named_parameters(), fast.named_parameters(), strict=True):
            assert torch.allclose(a.grad, b.grad, atol=1e-5), name


def test_the_loss_goes_through_the_head_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [Encoded(str(n), "a", (6, 7, 8), (9, 10 + n, 11)) for n in range(5)]
    model = tiny_model().eval()
    whole = completion_loss(model, padded_batch(some, 0))
    whole.backward()  # type: ignore[no-untyped-call]
    slopes = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    monkeypatch.setattr("anthrolab.training.loss.PIECE", 4)
    pieces = completion_loss(model, padded_batch(some, 0))
    pieces.backward()  # type: ignore[no-untyped-call]
    assert pieces.item() == pytest.approx(whole.item(), abs=1e-6)
    for name, p in model.named_parameters():
        assert torch.allclose(p.grad, slopes[name], atol=1e-6), name


def test_without_a_gradient_the_head_is_gone_through_once() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    from anthrolab.training.loss import _head_loss

    states, weight = torch.randn(10, 8, requires_grad=True), torch.randn(50, 8, requires_grad=True)
    labels = torch.arange(10)
    once = 2 * 10 * 8 * 50
    for learns, times in ((False, 1), (True, 3)):
        with torch.set_grad_enabled(learns), FlopCounterMode(display=False) as counted:
            loss = _head_loss()(states, weight, labels, torch.is_grad_enabled())
        assert counted.get_total_flops() == times * once
        assert loss.item() == pytest.approx(torch.nn.functional.cross_entropy(states @ weight.T, labels, reduction="sum").item(), abs=1e-4)


def test_the_blocks_of_a_tree_are_moved_once_and_not_in_every_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    tree_attention.register()
    moves: list[int] = []

    class Keys(torch.Tensor):
        def to(self, *args, **kwargs):  # type: ignore[no-untyped-def]
            moves.append(1)
            return self.as_subclass(torch.Tensor).to(*args, **kwargs)

    (tree,) = plant([Encoded("1", "a", (6, 7, 8), (9, 10))], 100)
    model = tiny_model(layers=4).eval()
    model.set_attn_implementation(tree_attention.NAME)
    batch = tree_batch(tree, windows_of(model))
    batch["tree"] = {w: [replace(b, keys=b.keys.as_subclass(Keys)) for b in blocks] for w, blocks in batch["tree"].items()}
    with torch.no_grad():
        completion_loss(model, batch)
    assert len(moves) == 2, "one block for each of two windows, four layers"


def test_a_capped_head_and_a_head_with_a_bias_have_their_own_scores() -> None:
    some = [Encoded("1", "a", (6, 7), (8, 9)), Encoded("2", "a", (6, 7), (10, 9, 11))]
    for change in ("cap", "bias"):
        model = tiny_model().eval()
        if change == "cap":
            model.config.final_logit_softcapping = 0.05
        else:
            model.lm_head.bias = torch.nn.Parameter(torch.linspace(-2, 2, model.config.vocab_size))
        with torch.no_grad():
            assert completion_loss(model, padded_batch(some, 0)).item() == pytest.approx(_hand_loss(model, some).item(), abs=1e-5)
