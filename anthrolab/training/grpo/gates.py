"""Checks before the first step: what would make the training useless or a lie is seen here, and it does not begin."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from anthrolab.loop.sft.samples import Sample
from anthrolab.training.chat_template import stop_ids
from anthrolab.training.grpo.files import Had
from anthrolab.training.grpo.settings import GRPOSettings
from anthrolab.training.grpo.voice import Voice
from anthrolab.training.loss import layer_kinds
from anthrolab.training.model_gates import ATTENTION, TOLERANCE
from anthrolab.training.preflight import Gate, Preflight, token_gates
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.settings import SFTSettings
from anthrolab.training.tokens import encode

MOST = 8
"""Rows that the gates look at."""


def samples_of(had: Had) -> list[Sample]:
    """The first asks of some dialogues as samples with the shortest answer that keeps the contract: the template's gates
    want a whole conversation."""
    found = []
    for rollout, _ in had[:MOST]:
        dialogue = rollout.dialogue
        if dialogue is None or not dialogue.asks:
            continue
        ask = next(a for a in dialogue.asks if a.speaker == dialogue.evaluated_role)
        name = dialogue.speakers[ask.speaker].name
        answer = {"role": name, "response": {"content": "", "timestamp": ask.now.strftime("%Y-%m-%dT%H:%M:%S"), "end": True}}
        found.append((dialogue, ask, json.dumps(answer, ensure_ascii=False), rollout.case.category))
    return [
        Sample(
            id=f"{d.dialogue_id}/0", system="你在微信上跟一个人私聊。", user=f"现在是 {a.now:%Y-%m-%dT%H:%M:%S}。轮到你决定下一步。", completion=said,
            dialogue_id=d.dialogue_id, ask=0, speaker=a.speaker, binding=d.binding, scenario=d.scenario or "", category=category, pair="", directed="",
            source="gold", round=None,
        )
        for d, a, said, category in found
    ]  # fmt: skip


def template_gates(tokenizer: Any, had: Had, settings: GRPOSettings) -> Preflight:
    """The gates of fine-tuning that look at template and tokens (chat policies only)."""
    samples = samples_of(had)
    if settings.kind != "chat" or not samples:
        return Preflight()
    given = SFTSettings.of(base="-", data=Path(), out=Path(), max_length=settings.max_length)
    return token_gates(tokenizer, samples, [encode(tokenizer, s, stop_ids(tokenizer), settings.max_length) for s in samples], given)


def contract_gate(had: Had, settings: GRPOSettings) -> Gate:
    """How often a reply keeps the contract: a policy that never does has nothing to learn from."""
    asks = [a for r, _ in had if r.dialogue for a in r.dialogue.asks or [] if a.speaker == r.dialogue.evaluated_role]
    kept = sum(a.decision is not None for a in asks)
    seen = f"{kept} of {len(asks)} decisions keep the contract"
    broken = next((a.error for a in asks if a.error), None)
    if asks and kept < settings.least_contract * len(asks):
        return Gate("contract", False, f"{seen}; the first that does not: {broken}", "fine-tune the policy on decisions first (`anthrolab sft train`), or raise max_new_tokens")
    if not asks:
        return Gate("contract", False, "no dialogue could be had", "see why the partner fails")
    return Gate("contract", True, seen)


def reward_gate(had: Had, dimensions: Dimensions) -> Gate:
    """Whether the judge assesses something of both groups, so that there are rewards."""
    scored = [j for _, j in had if j is not None and j.status == "scored"]
    invalid = [j.fault for _, j in had if j is not None and j.status == "invalid"]
    seen = f"{len(scored)} of {len(had)} dialogues have scores, {len(invalid)} are invalid"
    if not scored and not invalid:
        return Gate("reward", False, f"{seen}: the judge failed", "see that the judge's server answers")
    if not scored:
        return Gate("reward", False, f"{seen} ({invalid[0]} first): every reward is 0", "take a policy that makes valid chats now and then, or more cases")
    there = ~np.isnan(np.array([j.scores for j in scored]))
    for group, name in zip(dimensions.groups, ("turn by turn", "of the whole dialogue"), strict=True):
        if not there[:, group].any():
            return Gate("reward", False, f"{seen}; none of the dimensions {name} is assessed", "take another judge or rubric: a reward needs both groups")
    return Gate("reward", True, f"{seen}; {int(there.any(axis=0).sum())} of {len(dimensions.ids)} dimensions are assessed")


def tokens_gate(had: Had, voice: Voice) -> Gate:
    """Whether the policy ends its replies: one that never does is cut every time."""
    rows = [d for r, _ in had for d in r.decisions]
    if not rows:
        return Gate("tokens", False, "the policy made no decision", "see why no dialogue could be had")
    stopped = sum(d.completion[-1] in set(voice.stops) for d in rows if d.completion)
    longest = max(len(d.prompt) for d in rows)
    seen = f"{stopped} of {len(rows)} decisions end with a stop token; the longest prompt has {longest} tokens"
    if not stopped:
        return Gate("tokens", False, seen, f"raise max_new_tokens above {voice.settings.max_new_tokens}, or take a policy that stops")
    return Gate("tokens", True, seen)


def log_probs_gate(model: Any, had: Had, dtype: str, settings: GRPOSettings) -> Gate:
    """log p of drawn tokens as the training makes it, over rows that share their beginnings, against the model's own scores."""
    import torch

    from anthrolab.training.grpo.logps import tree_log_probs

    name = "log probabilities"
    if not settings.share_prefixes:
        return Gate(name, True, "made by TRL itself, row by row (share_prefixes is false)")
    strange = sorted(layer_kinds(model) - ATTENTION)
    if strange:
        return Gate(name, False, f"the model has layers of {', '.join(strange)}, which mix what a tree keeps apart", "set share_prefixes to false")
    rows = sorted((d for r, _ in had for d in r.decisions if d.completion), key=lambda d: len(d.prompt))[:2]
    longest, drawn = max(len(d.prompt) for d in rows), max(len(d.completion) for d in rows)
    ids = torch.zeros((len(rows), longest + drawn), dtype=torch.long, device=model.device)
    mask = torch.zeros_like(ids)
    for i, d in enumerate(rows):
        place = slice(longest - len(d.prompt), longest + len(d.completion))
        ids[i, place], mask[i, place] = torch.tensor([*d.prompt, *d.completion], device=model.device), 1
    was = model.training
    model.eval()
    with torch.no_grad():
        found, _ = tree_log_probs(model, ids, mask, drawn, settings.temperature)
        far = []
        for i, d in enumerate(rows):
            own = torch.tensor([[*d.prompt, *d.completion]], device=model.device)
            scores = model(input_ids=own, use_cache=False, logits_to_keep=len(d.completion) + 1).logits[0, :-1].float() / settings.temperature
            log_p = scores.log_softmax(-1).gather(1, own[0, len(d.prompt) :, None])[:, 0]
            far.append((found[i, : len(d.completion)] - log_p).abs())
    model.train(was)
    apart = torch.cat(far)
    allowed = TOLERANCE[dtype]
    most, mean = float(apart.max()), float(apart.mean())
    near = most <= allowed[0] / settings.temperature and mean <= allowed[1] / settings.temperature
    return Gate(name, near, f"log p of {len(apart)} tokens is {most:.4f} at most and {mean:.4f} on average from the model's own", "" if near else "set share_prefixes to false")
