"""The settings of a GRPO training from a notebook's parameters: those with a line of their own, and any other as JSON."""

import json
from typing import Any

from pydantic import ValidationError

from anthrolab.training.grpo.settings import GRPOSettings
from anthrolab.training.settings import TrainingError
from anthrolab.yaml_files import explain


def settings_of(more: str, **named: Any) -> GRPOSettings:
    """`named`: JSON values by the name of the setting. more: a JSON object of other settings, such as {"group": 8, "watch":
    {"window": 4}}; may be empty. TrainingError with a line for each fault, and where a setting is given twice."""
    try:
        others = json.loads(more or "{}")
    except ValueError as e:
        raise TrainingError(f"more: is no JSON ({e}); write it like {{\"group\": 8}}") from None
    if not isinstance(others, dict):
        raise TrainingError("more: holds no names of settings; write it like {\"group\": 8}")
    if twice := sorted(set(others) & set(named)):
        raise TrainingError(f"more: {twice[0]} has a parameter of its own; set that one")
    try:
        return GRPOSettings.model_validate_json(json.dumps(named | others))
    except ValidationError as e:
        raise TrainingError("\n".join(explain(e, GRPOSettings))) from None
