"""The dialogues of a training step as chat bubbles, group by group, with what each was given."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from markupsafe import escape
from pydantic import ValidationError

from anthrolab.cards.library import Library
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.verdict import Verdict
from anthrolab.show.bubbles import Chat, chat_html, chat_view
from anthrolab.show.grpo_view import RolloutView
from anthrolab.show.pages import asset
from anthrolab.training.settings import TrainingError

STATUSES = {"scored": "", "invalid": "invalid", "judge_failed": "the judge failed: no reward", "no_dialogue": "could not be had: no reward"}


def rollouts_html(rollouts: Sequence[RolloutView], library: Library | None = None, rubric: Rubric | None = None, *, most: int = 64) -> str:
    """A step's dialogues, each in a fold-out: a heading for each group, in it the best reward first and open in the first group.

    `library`: for titles and categories; `rubric`: for the wording of failed checkboxes. Of more than `most` dialogues the
    first groups are shown, and how many are left out is said.
    """
    ordered = sorted(rollouts, key=lambda r: (r.reward["group"], r.reward["reward"] is None, -(r.reward["reward"] or 0.0), r.reward["rollout"]))
    parts = [f"<style>{asset('chats.css')}</style>"]
    for group, members in groupby(ordered[:most], key=lambda r: r.reward["group"]):
        own = list(members)
        parts.append(f'<p style="font-family:sans-serif;margin:14px 0 6px"><b>Group {group}: case {escape(own[0].reward["case_id"])}</b>, {_spread(own)}</p>')
        missing = [r for r in own if r.dialogue is None]
        parts.append(chat_html([_chat(r, library, rubric) for r in own if r.dialogue is not None], first_open=len(parts) == 2))
        parts += [f"<p>Rollout {r.reward['rollout']} {STATUSES['no_dialogue']} ({escape(r.reward['fault'])}).</p>" for r in missing]
    if len(ordered) > most:
        parts.append(f"<p>{len(ordered) - most} more dialogues are not shown.</p>")
    return "\n".join(parts)


def _chat(rollout: RolloutView, library: Library | None, rubric: Rubric | None) -> Chat:
    chat, given, judged = rollout.dialogue, rollout.reward, rollout.judged
    assert chat is not None
    scenario = library.all_scenarios().get(chat.scenario or "") if library else None
    valid = None if given["status"] not in ("scored", "invalid") else given["status"] == "scored"
    verdict = _verdict(judged, chat.dialogue_id)
    shown = chat_view(chat, gate=judged.get("gate"), verdicts={verdict.judge: verdict} if verdict else {}, rubric=rubric, scenario=scenario, valid=valid)
    return replace(shown, outcome=f"{what_it_was_given(given)} · {shown.outcome}", good=given["status"] == "scored")


def what_it_was_given(given: dict[str, Any]) -> str:
    """A row of rewards/ in a line: reward with its two parts, advantage, the weakest dimensions."""
    if given["reward"] is None:
        return STATUSES.get(given["status"]) or "no reward: nothing of a group of dimensions was assessed"
    parts = [f"reward {given['reward']:.3f}"]
    if given["status"] == "scored":
        parts[0] += f" (legacy {given['legacy']:.3f}, adaptive {given['adaptive']:.3f})"
    parts.append(f"advantage {given['advantage']:+.2f}")
    scores = {name.removeprefix("s_"): v for name, v in given.items() if name.startswith("s_") and v is not None}
    if weak := sorted((v, name) for name, v in scores.items() if v < 1)[:3]:
        parts.append(f"weakest: {', '.join(f'{name} {v:.2f}' for v, name in weak)}")
    return " · ".join(parts)


def _verdict(judged: dict[str, Any], dialogue_id: str) -> Verdict | None:
    if not judged.get("verdict"):
        return None
    try:
        return Verdict.model_validate(judged["verdict"])
    except ValidationError as e:
        raise TrainingError(f"rollout {dialogue_id}: its verdict cannot be read ({e.error_count()} problems); put the step's file back") from e


def _spread(group: Sequence[RolloutView]) -> str:
    rewards = [r.reward["reward"] for r in group if r.reward["reward"] is not None]
    if not rewards:
        return f"{len(group)} dialogues, none with a reward"
    return f"{len(group)} dialogues, rewards {min(rewards):.3f} to {max(rewards):.3f}" + (f", {len(group) - len(rewards)} without" if len(rewards) < len(group) else "")
