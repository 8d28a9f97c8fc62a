"""Rules about how much of themselves the person puts into a chat."""

import re
from functools import lru_cache

from anthrolab.judging.rules.asking import asking
from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import is_filler, is_question, is_stock_question, letters
from anthrolab.runtime.text import normalise

_SOUND = (
    r"嗯|恩|哦|噢|喔|额|呃|唔|哈|嘿|呵|嘻|嘤|啊|呀|哎|唉|诶|欸|嗳|哇|哟|呦|喂|嘛|啦|呢|呐|哪|哩|嘞|咯|喽|呗|吧|的|哒|滴|昂|那|了|哉|啧|h|6|em+|[a-z]"
)
_YES = (
    r"好|行|对|是|中|成|得|可以|可|同意|收到|知道|晓得|明白|了解|懂|没问题|没毛病|没错|没有异议|要得|妥|记下|记住|已知悉|知悉|ok|okay|roger|okk|1|"
    r"冇问题|系咁|系|明|好嘅|嘅|好使|整挺好|好生|对头|沾|能成|好伐|谢谢|多谢|辛苦[你您]?|听[你您]的|就这样|就这么办|先这样|那就这样|没事|不客气|"
    r"这样|这样子|原来如此|原来是这样|原来|是这样|有道理|是这个理|说得对|确实|也是|[你您]|我(?=知道|明白|了解|晓得|懂|记)|就|都|也"
)
_ACK = re.compile(rf"(?:{_SOUND}|{_YES})+")
_REACTION = re.compile(
    rf"(?:{_SOUND}|{_YES}|天|天[哪呐啊]|我?的?妈[呀耶]|我的?天|好家伙|离谱|我?服|绝|牛|绷|笑死我?|也太|太|真|好|真的|假的|哇塞|嗯哼|这也行|这么回事|啊这|真好|挺好|多好|这么|那么|厉害|过分|可惜|严重|"
    r"有意思|有点意思|夸张|不是吧|这|难怪|肯定|心疼|难|可|能忍|别急|莫急|别难过|别哭|别怕|别担心|别气|莫气|抱抱|摸摸头?|注意身体|早点睡|早点休息|好好休息|保重|会好的|没关系|听起来|不错|有趣|理解|干得漂亮|精彩|刺激|有你的|笑不活|操作|还有|不容易|摸摸|很|挺|真行|佩服|恭喜|愿闻其详|展开|说说|讲讲|慢慢|慢点|说|讲|接着|跟我|给我|能|吗|继续|我?(?:在听|听着)|可不|就是|怎么会|不会|是么|巧|"
    r"惨|气人|吓人|神奇|难得|漂亮|好看|加油|棒|赞|优秀|强|好事|那也|多|一点|点|详细)+"
)
_OWN_LIFE = re.compile(r"(?<![跟给对])我(?!说了算|的天|去$|靠|擦|晕|服|知道|明白|懂|晓得|了解|在听|听着|信$)|俺|咱|老子|本人")
_OWN_DOINGS = re.compile(
    r"[刚正在昨今明前想累饿困冷热疼痛怕晕麻渴酸胖瘦睡醒吃喝买卖做写考修找打跑走坐等排带租搬丢病没不买养种攒欠还赚花选换住家妈爸爷奶哥姐弟妹儿女孙娃]|"
    r"回[来家去]|头回|上次|上回|以前|从小|小时|习惯|喜欢|爱|讨厌|最烦|烦|心[里情]|羡慕|老[公婆板家师]|单位|公司|单身|轮休|上班|下班|加班|毕业|退休|[手脚腿嗓眼头腰胃]|一个人|哭"
)
_OF_SELF = re.compile(
    r"(?:^|[，,。！!…\s]|今天|昨天|刚才?|反正|可是?|但|其实)(?:我|俺|本人)"
    r"(?!们?(?:知道|明白|理解|懂你|建议|会帮|可以帮|能帮|来帮|帮你|很高兴|能理解|完全|给你|为你))[^，,。？?]{3,}"
)


@lru_cache(maxsize=65536)
def is_acknowledgement(text: str) -> bool:
    """True for a message that only acknowledges, agrees or thanks: 好的收到, 嗯 有道理, [OK], 1."""
    core = normalise(re.sub(r"\[[一-鿿A-Za-z]{1,4}\]", "", text))
    return not core or is_filler(text) or bool(_ACK.fullmatch(core))


@lru_cache(maxsize=65536)
def is_reaction(text: str) -> bool:
    """True for a message that only reacts to the partner: 天哪, 好厉害, 慢点说, 真好."""
    core = normalise(re.sub(r"\[[一-鿿A-Za-z]{1,4}\]", "", text))
    return is_acknowledgement(text) or bool(_REACTION.fullmatch(core))


def tells_of_self(scene: Scene) -> Finding:
    """Passes on a statement with the speaker as its subject; fails if four turns or more hold nothing but questions,
    acknowledgement and reactions, a fifth of them at most in words that the lists do not know but that show nothing of
    one's own (an own opener with 我 in it leaves it undecided), or three nothing but filler."""
    if any(_OF_SELF.search(m.content) and asking(m.content) == "no" for m in scene.own):
        return PASSED
    if len(scene.own) >= 3 and all(is_filler(m.content) for m in scene.own):
        return failed(f"only filler in {len(scene.own)} messages")
    opened = any(m.opener and m not in scene.partner and _OWN_LIFE.search(m.content) for m in scene.dialogue.messages)
    rest = [m.content for m in scene.own if not _nothing_of_self(m.content)]
    unclear = any(letters(text) > 6 or _OWN_LIFE.search(text) or _OWN_DOINGS.search(text) for text in rest)
    if len(scene.own) >= 4 and not opened and not unclear and 5 * len(rest) <= len(scene.own):
        return failed(f"only questions and reactions in {len(scene.own)} messages")
    return UNDECIDED


_OF_PARTNER = re.compile(r"(?:那|所以)?[你您][^我]{1,7}[的了啊呀]$|(?:那|所以|然后|后来|[你您他她人])[^我]{0,6}呢$|那?[你他她]?(?:得|该)?多[^我]{1,3}$|那[他她你][^我]{1,8}$|花了?不少钱?吧$|[这那你他她](?:也|可)?(?:太|真|好|够|这么|那么)[^我饿累困冷热疼晕烦怕想]{1,3}[了啊呀哦]*$")

_EXCLAIMS = re.compile(r"(?:真|太|好(?![久几])|这(?![边里儿几两个会阵])|那(?![边里儿几两个会阵])|有这|是该|可|够|蛮|多)[^我俺咱饿累困冷热疼痛晕烦怕想渴]{1,6}")


def _nothing_of_self(text: str) -> bool:
    """A reaction, a question, or a few words on the partner (你辛苦了), clause by clause."""
    if is_reaction(text) or (asking(text) == "yes" and not _OWN_LIFE.search(text)):
        return True
    parts = [part for part in re.split(r"[，,。\s]+", text) if part]
    return not _OWN_LIFE.search(text) and all(
        is_reaction(part) or is_stock_question(part) or asking(part) == "yes" or any(p.fullmatch(part.rstrip("！!~～")) for p in (_OF_PARTNER, _EXCLAIMS)) for part in parts
    )


def not_passive(scene: Scene) -> Finding:
    """Passes if at least half of three or more turns have content, fails if at most a fifth of four or more say more
    than acknowledgement or reaction."""
    turns = len(scene.own)
    passive = sum(is_acknowledgement(m.content) for m in scene.own)
    content = sum(not is_reaction(m.content) and (letters(m.content) >= 5 or is_question(m.content)) for m in scene.own)
    if turns >= 4 and 5 * (turns - passive) <= turns:
        return failed(f"{turns - passive} of {turns} messages say anything of their own")
    return PASSED if turns >= 3 and 2 * content >= turns else UNDECIDED


_TOKEN = re.compile(
    r"(?:不|没|有|没有|不是|不用|不要|不会|不去|不行|不知道|不晓得|没事|还行|还好|一般|一般般|就那样|可能|也许|大概|差不多|在|到|来|去|看|都行|随便|随意|再说|是不是|"
    rf"是吗|真的|真的吗|[0-9]|{_SOUND}|{_YES})+"
)


def _token(text: str) -> bool:
    """A word in reply with nothing to go on: 没, 还行, 不用."""
    core = normalise(text)
    return is_acknowledgement(text) or (len(core) <= 3 and bool(_TOKEN.fullmatch(core)))


def both_take_part(scene: Scene) -> Finding:
    """Passes if each has three messages that are no filler and a quarter of all such, and half of the person's turns
    are more than token replies; fails if the person has at most one turn that is no filler, or of five or more at
    most a tenth that are more than a token reply (没, 还行, 不用), if the partner says nothing after the opener, or if
    one of the two has nothing but filler in a chat of six messages, or less than a tenth of ten with content."""
    real = sum(not _token(m.content) for m in scene.own)
    if sum(not is_filler(m.content) for m in scene.own) <= 1 or (len(scene.own) >= 5 and 10 * real <= len(scene.own)):
        return failed(f"{len(scene.own)} messages of the evaluated person, {real} of them with content")
    own = sum(not is_filler(m.content) for m in scene.dialogue.messages if m.speaker == scene.dialogue.evaluated_role)
    partner = sum(not is_filler(m.content) for m in scene.partner)
    fewer, total = min(own, partner), own + partner
    if own >= 6 and not any(not m.opener for m in scene.partner):
        return failed(f"{own} messages of the evaluated person, and none of the partner but the opener")
    if len(scene.dialogue.messages) >= 6 and (fewer == 0 or (total >= 10 and 10 * fewer < total)):
        return failed(f"messages with content: {own} of the evaluated person, {partner} of the partner")
    return PASSED if fewer >= 3 and 4 * fewer >= total and 2 * real >= len(scene.own) else UNDECIDED
