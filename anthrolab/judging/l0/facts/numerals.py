"""Numbers as people write them in chat: 32, 三十二, 廿七, 三二; years of birth as 1997, 97, 九七."""

_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}


def number(text: str) -> int:
    """32, 三十二, 三十有二, 廿七, 三二, 九七, 两 and 十八 as integers."""
    if text.isdigit():
        return int(text)
    text = text.replace("十有", "十")
    if text.startswith("廿"):
        return 20 + (_DIGITS[text[1]] if len(text) > 1 else 0)
    if "十" in text:
        tens, _, ones = text.partition("十")
        return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)
    return int("".join(c if c.isdigit() else str(_DIGITS[c]) for c in text))
