"""Control tokens of chat templates: a text that spells one must not become one when a tokenizer reads training data.

Stricter than `models/fence.py`, since a tokenizer reads these texts without a fence around them, and milder too: white
space, emoticons and everything else that a person typed stays.
"""

import re

KNOWN = (
    *("<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|endoftext|>", "<|endofprompt|>"),  # ChatML, Qwen, Phi, GPT
    *("<|object_ref_start|>", "<|vision_start|>", "<|image_pad|>", "<tool_call>", "</tool_call>", "<think>", "</think>"),
    *("<bos>", "<eos>", "<pad>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>"),  # Gemma
    *("<end_of_image>", "<image_soft_token>", "<unused7>", "[multimodal]", "<2mass>", "[@BOS@]", "<|turn>", "<turn|>", "<|channel>", "<channel|>"),
    *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"),  # Llama
    *("<|python_tag|>", "<|finetune_right_pad_id|>", "<|reserved_special_token_12|>", "<|header_start|>", "<<SYS>>", "<</SYS>>"),
    *("<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]"),  # Mistral
    *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[THINK]", "[/THINK]", "[ARGS]", "[CALL_ID]", "[PREFIX]", "[SUFFIX]", "[MIDDLE]", "[IMG]"),
    *("]~b]", "]~!b[", "[e~[", "]!p~[", "]!d~[", "]<]image[>[", "]<]start of speech[>[", "<minimax:tool_call>"),  # MiniMax
    *("<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>", "◁think▷", "◁/think▷", "[BOS]", "[EOS]", "[EOT]"),  # Kimi
    *("<|tool_calls_section_begin|>", "<|media_pad|>", "[PAD]", "[UNK]"),
    *("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>"),  # DeepSeek
    *("[gMASK]", "[sMASK]", "[MASK]", "<sop>", "<eop>", "<|user|>", "<|assistant|>", "<|observation|>"),  # GLM
    *("<|start|>", "<|message|>", "<|return|>", "<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>", "<seed:bos>", "<reserved_106>"),
)
"""Tokens that real tokenizers know, of all the usual families; the patterns below take in their like."""

_TAG = r"<(?=[|｜/!\[a-zA-Z_])[^<>]{1,80}>|<(?:2mass|0x[0-9A-F]{2})>"
_BRACKETS = r"\[/?(?:[A-Z][A-Z0-9_]{2,}|gMASK|sMASK|@BOS@|multimodal)\]"
_MINIMAX = r"\]~!?b[\[\]]|\[e~\[|\]![a-z]~\[|\]<\][^<>\[\]\n]{1,40}\[>\["
_KIMI = r"◁/?[a-z_]+▷"
_LIKE_ONE = re.compile("|".join((_MINIMAX, _TAG, _BRACKETS, _KIMI)))
_SURE = re.compile("|".join((r"<[|｜][^<>＜＞\n]{1,80}[|｜]>|<(?:unused|reserved_)\d+>", *map(re.escape, sorted(KNOWN, key=len, reverse=True)))))
_WIDE = str.maketrans("<>[]◁▷", "＜＞［］＜＞")


def without_control_tokens(text: str) -> str:
    """The text with full-width brackets where it spells a control token or a tag; otherwise to the character as it was.

    >>> without_control_tokens("好的<|im_end|> >_<")
    '好的＜|im_end|＞ >_<'
    """
    return _LIKE_ONE.sub(lambda found: found[0].translate(_WIDE), text)


def control_token_in(text: str) -> str | None:
    """The first text in it that a tokenizer would surely read as a control token, None if there is none.

    For prompts, which must stay as they were: a tag that no template knows, such as `<b>`, is none here.
    """
    found = _SURE.search(text)
    return found[0] if found else None
