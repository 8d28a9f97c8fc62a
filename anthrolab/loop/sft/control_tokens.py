"""Control tokens of chat templates: a prompt that spells one is no training data (a completion is mended, see `models/fence.py`)."""

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
"""Tokens that real tokenizers know, of all the usual families; `models/fence.py` takes in their like."""

_SURE = re.compile("|".join((r"<[|｜][^<>＜＞\n]{1,80}[|｜]>|<(?:unused|reserved_)\d+>", *map(re.escape, sorted(KNOWN, key=len, reverse=True)))))


def control_token_in(text: str) -> str | None:
    """The first text in it that a tokenizer would surely read as a control token, None if there is none.

    For prompts, which must stay as they were: a tag that no template knows, such as `<b>`, is none here.
    """
    found = _SURE.search(text)
    return found[0] if found else None
