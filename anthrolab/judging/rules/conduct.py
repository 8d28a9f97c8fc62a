"""The rule about shutting the partner out."""

import re
from itertools import pairwise

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import is_filler, is_question, is_real_question, letters, shown
from anthrolab.runtime.dialogue import Message
from anthrolab.runtime.text import normalise

_DISMISSAL = re.compile(
    r"关我(?:什么|啥|屁|毛)?事|不关我(?:的)?事|(?:懒得|没空|没心情|没工夫|没兴趣|没时间)(?:理|搭理|听|跟你|和你|回|看|管你|骂|说|安慰)|(?<!也)不(?:想|愿意?)(?:理你|搭理|跟你|和你|管你|回你)|"
    r"别来?烦|烦不烦|烦死了?(?:$|[ ，,])|有完没完|爱咋咋|爱(?:怎么|咋)(?:想|办|样|着)?(?:就)?(?:怎么|咋)|爱([一-鿿])不?\1|爱([一-鿿])不\2|不感兴趣|没兴趣(?:$|听)|"
    r"(?:跟|和|与)我(?:没|无)(?:有)?(?:关系?|关)|跟我说(?:干嘛|干吗|有什么用|有啥用|没用)|无话可说|没(?:什么|啥)[好可](?:说|谈|讲|聊|解释)|没话(?:跟你|可)?说|"
    r"别(?:再)?(?:发了|问我|问了|找我|说了|吵|烦)|找别人|(?:[问找]|跟.{0,4})别人(?:说|问|讲)?去?(?:$|[吧 。])|"
    r"你自己看着办(?:别|$)|(?:你)?自己(?:想|定|决定|清楚|想办法)(?:去)?(?:吧|$)|那是你的事|你的事(?:情)?(?:别|跟我|我不管)|我不管(?:了|$|[。])|(?<!也)不想(?:听|看)(?:了|$|[。])|"
    r"随便你(?:怎么|咋|$)|随你便|活该|自找的|少(?:来)?(?:矫情|烦)|矫情|谁让你等"
)
_HARD = re.compile(r"关我(?:什么|啥|屁|毛)事|(?:懒得|没空)(?:理|搭理)你|别来?烦我|不想[跟和]你(?:说|聊)|爱咋咋地吧|爱咋咋")
_TOLD = re.compile(r"早点睡|他|她|人家|别人说|他们|老板|[怪叫让]|要是|如果|除非|不想听.{0,3}歌|一声|开车|在忙|先|才怪|谁管你")
_JOKING = re.compile(r"我(?:马上|这就|过来|过去|来找|陪)|抱抱|哈|嘿|[~～]|哼|hh|\[|😂|🤣|😏|😜|我都支持|诶", re.IGNORECASE)
_WEAK = re.compile(
    r"(?:[嗯哦噢喔呵啊额呃吧了啦呗]|好吧|行吧|随便|随意|随[你您]|怎么想|都行|无所谓|不知道|不晓得|不清楚|没意见|没想法|不想|没有|没|再说|回头说|晚点|忙|没空|没看|不看|不回|知道|是吗|哦豁|这样|"
    r"就那样|就这样|你定|你说是就是|那你忙|那又|不然|怎么|呢|没兴趣|不感兴趣|没时间|没心情|没工夫|不知道说什么|不需要|没感觉|不必|那又怎样|不然呢|拉倒|想多了|所以|不用|别烦|自己想办法|不会|不去|不吃|不说|不来|不陪|懒得看|忍着|自己清楚|谁让你等|怎么了|跟我没关系|(?:你)?问别人去|就早点睡|懒得说|懒得骂|懒得讲|看了|行|好|你|看着办|改天)+"
)
_MEANT = re.compile(
    r"你就(?:没|一个|这|不)|[说回]我?[一两]?句|说句话|说说话|怎么想|什么意思|你(?:的)?意思|想法|到底|听我|听你|能不能听|有没有在听|帮我想|帮我拿|帮帮我|求你|求求|骂我|怪我|生我气|消气|道个?歉|对不起|对不住|认真|真心|"
    r"难受|难过|害怕|有点怕|好怕|心里|怎么办|走了|没了|没法|拿不定|离婚|分手|安慰|从头|不下去|别这样|认错|晚期|查出来|手术|哭|撑不|睡不着|愁|这么大的事|小事|大事|分开|准话|好好谈|商量|想跟你|想听|"
    r"想问你|等了?你|爱我|过不了|想回家|句对不起|生日|医院|摔断|聊聊|憋得|好好过|这么对我|彻底完|辛辛苦苦|熬了|受不了|崩溃|委屈|孤单|难熬|病成|讲清|说清|讲完|说完|剩你|在乎|不想我|想你了|不理我|不回我|回不去|做错|谢谢|陪我|理我|一个哦|后事|写的?那封|攒了|需要你|怀孕|被裁|裁了|恶性|癌|好想你|冷淡|憋了|真实|说会儿话|说点什么|别不说|撑不住|失眠|写了好|原谅|爱你|喜欢你|拜托|没考上|考砸|出车祸|疼死|好累|孤独|带大的|去世|坐下来|好好说|解释|什么感觉|确诊|听进去|协议"
)
_COLD = re.compile(r"忍着|呵|不然呢|拉倒|想多了|自己清楚|谁让你等|没时间|随便|无所谓|没想法|没空|不想|懒得|呵|自己想|不回|随你|别")


def no_cold_shutdown(scene: Scene) -> Finding:
    """Fails if only filler or brush-offs answer a partner who talks, if what the partner means (a plea, distress, a
    matter of weight) gets two brush-offs running (哦, 随便, 不知道), one cold one (随便, 没空) or a dismissal (别烦我),
    or if the partner's question and two more messages stay without an answer at the end. Where it is laughed off or
    made good at once, undecided. Passes if questions got something back, nothing is brushed off, no distress is met
    with filler, and filler is rare."""
    fillers = [m for m in scene.own if is_filler(m.content)]
    talk = [m for m in scene.partner if letters(m.content) >= 8]
    off = [m for m in scene.own if brushes_off(m.content)]
    if len(scene.own) >= 4 and len(talk) >= 3 and 10 * len(off) >= 9 * len(scene.own):
        return failed(f"nothing but filler and brush-offs in {len(off)} messages, such as {shown(off[-1].content)}")
    if cold := _shut_out(scene):
        return failed(cold)
    for index in scene.dialogue.turns():
        text = scene.dialogue.messages[index].content
        if _HARD.search(text) and not _TOLD.search(text):
            return UNDECIDED if _in_jest(scene, index) else failed(f"dismisses: {shown(text)}")
    unanswered = _unanswered(scene)
    if len(unanswered) >= 3 and any(is_real_question(m.content) for m in unanswered):
        return failed(f"{len(unanswered)} messages without an answer, such as {shown(unanswered[0].content)}")
    left_open = any(is_question(m.content) for m in unanswered)
    curt = any(_MEANT.search(a.content) and is_filler(b.content) for a, b in pairwise(scene.dialogue.messages) if b in scene.own)
    warm = not left_open and not curt and 3 * len(fillers) <= len(scene.own) and all(m in fillers for m in off)
    return PASSED if len(scene.own) >= 3 and warm and not any(_DISMISSAL.search(m.content) for m in scene.own) else UNDECIDED


def brushes_off(text: str) -> bool:
    """True for a message that only puts the partner off: 随便, 不知道, 哦 然后呢, 别烦, 忙."""
    core = normalise(text)
    return not core or is_filler(text) or bool(_WEAK.fullmatch(core)) or (len(core) <= 12 and bool(_DISMISSAL.search(text)) and not _JOKING.search(text))


def _shut_out(scene: Scene) -> str | None:
    """A dismissal, or two brush-offs running, in answer to something that was meant."""
    row: list[str] = []
    meant = False
    said: list[str] = []
    for index, message in enumerate(scene.dialogue.messages):
        text = message.content.strip()
        if message.speaker != scene.dialogue.evaluated_role:
            said.append(text)
            continue
        if message.opener:
            continue
        serious = any(_MEANT.search(t) for t in said)
        if _DISMISSAL.search(text) and serious and not _in_jest(scene, index) and not _TOLD.search(text):
            return f"dismisses {shown(said[-1])}: {shown(text)}"
        if said and brushes_off(text) and not _in_jest(scene, index):
            meant = meant or serious
            row.append(text)
            cold = any(not is_filler(t) or normalise(t) in ("哦", "呵", "呵呵", "噢") for t in row)
            if serious and _COLD.search(text):
                return f"brushes off {shown(said[-1])}: {shown(text)}"
            if len(row) >= 2 and cold and meant and (serious or letters(said[-1]) >= 5):
                return f"brushes off {shown(said[-1])}: {shown(row[-2])} {shown(text)}"
        elif said or not is_filler(text):
            row, meant = [], False
        said = []
    return None


def _in_jest(scene: Scene, index: int) -> bool:
    """True if the message, or one of the next two, laughs or comes round."""
    return any(_JOKING.search(m.content) for m in scene.dialogue.messages[index : index + 3])


def _unanswered(scene: Scene) -> list[Message]:
    """The partner's messages after the evaluated role's last."""
    trailing: list[Message] = []
    for message in reversed(scene.dialogue.messages):
        if message.speaker == scene.dialogue.evaluated_role:
            break
        trailing.insert(0, message)
    return trailing
