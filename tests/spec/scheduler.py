"""Run the product's scheduler on a file of vectors: python -m tests.spec.scheduler FILE."""

import json
import sys
from pathlib import Path
from typing import Any

from anthrolab.runtime.schedule import SILENCE, Asked, Plan, Rules, Sent, converse

FAREWELLS = frozenset({"拜拜", "晚安", "先睡了", "回头聊"})
"""The farewells that the vectors are written for (their note names them)."""


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    """The observed course of one case, in the vectors' own form."""
    rules = Rules(
        horizon_s=case["horizon_s"],
        max_delay_s=case["max_delay_s"],
        max_consecutive=case["max_consecutive"],
        max_messages=case["max_messages"],
        repeat_exempt_chars=case["repeat_exempt_chars"],
        farewells=FAREWELLS,
    )
    script = {speaker: iter(lines) for speaker, lines in case["script"].items()}

    def answer(ask: Asked) -> Plan:
        line = next(script.get(ask.speaker, iter(())), None)
        return SILENCE if line is None else Plan(line["content"], line["delay_s"], line["end"])

    dance = converse(rules, Sent(case["opener"]["speaker"], case["opener"]["content"], 0))
    try:
        first, second = next(dance)
        while True:
            first, second = dance.send((answer(first), answer(second)))
    except StopIteration as stop:
        course = stop.value
    return {
        "messages": [{"speaker": m.speaker, "content": m.content, "at_s": m.at_s} for m in course.messages],
        "asks": [
            {
                "speaker": a.speaker,
                "now_s": a.now_s,
                "messages_seen": len(a.messages),
                "previous_draft": a.draft and a.draft.content,
            }
            for a in course.asks
        ],
        "guards": [
            {"speaker": g.speaker, "content": g.content, "guard": g.guard, "at_s": g.at_s} for g in course.guards
        ],
        "stop": course.stop,
    }


def main(path: str) -> int:
    """Print N/N matched; 0 only if every vector matches."""
    vectors = json.loads(Path(path).read_text(encoding="utf-8"))["vectors"]
    matched = 0
    for number, vector in enumerate(vectors):
        observed = run_case(vector["case"])
        wrong = [key for key in vector["expect"] if observed.get(key) != vector["expect"][key]]
        if wrong:
            print(f"vector {number}: {', '.join(wrong)} differ: {json.dumps(observed, ensure_ascii=False)}")
        else:
            matched += 1
    print(f"{matched}/{len(vectors)} matched")
    return 0 if vectors and matched == len(vectors) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
