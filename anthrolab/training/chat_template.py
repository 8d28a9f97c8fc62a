"""A chat template for a base model that has none, and the tokens that end its turn."""

from typing import Any

from anthrolab.training.settings import TrainingError

GEMMA = (
    "{{ bos_token }}"
    "{%- if messages[0]['role'] == 'system' -%}"
    "{%- set first = messages[0]['content'] + '\\n\\n' -%}{%- set rest = messages[1:] -%}"
    "{%- else -%}{%- set first = '' -%}{%- set rest = messages -%}{%- endif -%}"
    "{%- for message in rest -%}"
    "{%- if message['role'] == 'assistant' -%}{%- set role = 'model' -%}{%- else -%}{%- set role = message['role'] -%}{%- endif -%}"
    "{{ '<start_of_turn>' + role + '\\n' + (first if loop.first else '') }}"
    "{{ message['content'] | trim }}{{ '<end_of_turn>\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}"
)
"""Gemma's turns, as its instruct models have them: the system text stands before the first user text in the same turn."""

CHATML = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)

TURNS = {"<end_of_turn>": ("<start_of_turn>", GEMMA), "<|im_end|>": ("<|im_start|>", CHATML)}
"""The token that ends a turn -> the one that begins it, and the template."""

ENDS = (*TURNS, "<|eot_id|>", "<|end|>", "<turn|>", "<end_of_utterance>")
"""Tokens that end a turn in the templates of known models."""


def with_chat_template(tokenizer: Any, name: str) -> str | None:
    """Give the tokenizer a template if it has none; which end of turn that was made for, or None if it had one.

    TrainingError if it has no turn tokens that a template could use.
    """
    if tokenizer.chat_template:
        return None
    vocabulary = tokenizer.get_vocab()
    for end, (begin, template) in TURNS.items():
        if begin in vocabulary and end in vocabulary:
            tokenizer.chat_template = template
            return end
    raise TrainingError(f"{name}: has no chat template and no tokens for turns ({', '.join(TURNS)}); take the instruct model of its family as base")


def stop_ids(tokenizer: Any) -> list[int]:
    """The tokens after which a reply is over: the end of the text, and every end of a turn that the template writes."""
    vocabulary = tokenizer.get_vocab()
    ends = [vocabulary[end] for end in ENDS if end in vocabulary and end in (tokenizer.chat_template or "")]
    return list(dict.fromkeys([i for i in (tokenizer.eos_token_id, *ends) if i is not None]))
