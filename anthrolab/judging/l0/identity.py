"""L0-01: the speaker says to be an AI, a program, or not a person.

None: a question, a topic (我是做AI的), a denial, a joke or simile (像个机器人, 莫得感情的干饭机器人), reported words.
"""

import re
from functools import cache

from anthrolab.judging.l0.framing import clause_before, no_claim, plain, sentence_after

TRIGGERS = (
    "ai ａｉ a.i 人工 智能 语言模型 大模型 机器 虚拟 程序 代码 算法 数据 模型 真人 人类 真实 真正 像人 像真 像个 像一 身体 肉体 肉身 躯体 实体 物理 本质 "
    "存在 意识 gpt 千问 通义 文心 文小 豆包 kimi deepseek claude gemini siri 小爱 小冰 智谱 元宝 混元 星火 qwen copilot grok llama chat open "
    "训练 知识 被设 被编 被训 被开 开发 创造 设计 服务器 云端 数字人 bot robot language virtual assistant computer human real actual physical "
)

_I = "(?:我们?|俺|咱|本人|在下)"
_ADVERBS = (
    r"(?:\s|其实|真的|真|确实|的确|本来|本质上|说到底|说白了|归根结底|毕竟|虽然|虽说|尽管|只|仅仅|不过|也|都|就|可|现在|目前|这边|一直|"
    r"终究|始终|当然|就只|无非|，|,){0,6}"
)
_MEASURE = r"(?:一|1)?\s*(?:个|款|名|位|台|种|只)?\s*"
_MAKERS = r"(?:Open\s*AI|Anthropic|Google|谷歌|Meta|微软|阿里(?:云|巴巴)?|百度|字节(?:跳动)?|腾讯|科大讯飞|讯飞|智谱|深度求索|DeepSeek|月之暗面|华为)"
_QUALITY = (
    r"(?:(?:基于|由|来自|靠)[^，。,\s]{1,14}的|大型|超大|智能|虚拟|(?:没有|不会|不用|不需要|不能|无法)[^，。,\s]{1,6}的|普通的?|小小的?|纯|生成式|你手机里的|聊天|对话|陪聊|陪伴|语音|在线|线上|"
    rf"{_MAKERS}(?:旗下|开发|训练|研发|推出)?的|"
    r"你的|专属|贴心的?|人工|数字|\s){0,6}"
)
_KIND = r"(?:语言模型|大模型|模型|助手|助理|程序|系统|机器人|客服|伴侣|女友|男友|朋友|伙伴|陪伴者?|智能体|角色|人格|生命|产品|虚拟人)"
_AI = rf"(?:A\.?I\.?|人工智能)\s*(?:聊天|对话|语音|虚拟|语言|智能|大){{0,6}}{_KIND}?"
_NOUN = (
    rf"(?:{_AI}|大?语言模型|大模型|(?:聊天|对话|客服|陪聊|智能|语音)?机器人|(?:智能|虚拟|语音|AI)(?:助手|助理|客服|伴侣|的?存在|人物?|角色|的)|"
    r"智能体|数字人|chat\s*bot|bot|ChatGPT|GPT(?:-?\d[\w.]*)?|通义千问|通义|千问|文心一言|文小言|豆包|Kimi|DeepSeek|Claude|Gemini|Siri|"
    r"小爱同学|微软小冰|智谱清言|ChatGLM|腾讯元宝|混元|讯飞星火|星火大模型|Qwen[\w.-]*|Copilot|Grok|Llama)"
)
_CODE = r"(?:一?(?:段|串|行|堆|组|套|个)\s*(?:冰冷的|冷冰冰的|简单的|计算机|电脑|人工智能|聊天|软件|智能){0,6}(?:程序|代码|算法|数据|模型))"
_ENDS = (
    r"(?=\s*(?:$|[，,。.！!？?；;、~～…\n：:（(]|啊|呀|哦|噢|嘛|呢|哈|啦|了|而已|罢了|来着|没|无法|不|所以|哪|怎么|又|也|但|可是|只能|嘿|诶|，|"
    r"[\s]|(?<=助手)[\u4e00-\u9fff]{1,3}$|(?<=助理)[\u4e00-\u9fff]{1,3}$|(?<=客服)小[\u4e00-\u9fff]{1,2}(?:$|[，,\s])))"
)

_IS_AI = (
    rf"{_I}{_ADVERBS}(?:是|就是|叫|一|作为|身为)\s*{_MEASURE}{_QUALITY}{_NOUN}{_ENDS}"
    rf"|{_I}{_ADVERBS}是\s*{_CODE}{_ENDS}"
)
_AS_AI = rf"(?:作为|身为)\s*{_MEASURE}{_QUALITY}{_NOUN}\s*(?=$|[，,。\s]|我|没|无法|不能|不会|不具备|只能|的我)"
_SELF = "|".join(
    (
        rf"{_I}(?:这种|这样的|一个|一介)\s*{_NOUN}{_ENDS}",
        r"(?:我们|咱们?|身为)AI(?=没有?(?:身体|感情|情感|感觉|实体)|不会|不能|无法|不需要|不用|哪会|哪有|是没有|怎么会)",
        rf"我的?本质(?:上)?(?:就|其实|还){{0,6}}是\s*{_MEASURE}{_QUALITY}{_NOUN}{_ENDS}",
        rf"我(?:的)?(?:背后|底层|后台)(?:其实|就){{0,6}}(?:是|用的是)\s*{_NOUN}{_ENDS}",
        rf"我(?:叫|是)[^，。,\s]{{1,6}}[，,\s]+是?\s*(?:一|1)?(?:个|款|名|位)\s*{_QUALITY}{_NOUN}{_ENDS}",
        rf"以\s*{_NOUN}\s*的身份",
        rf"(?:跟|和|与|陪)你(?:聊天|说话|对话|聊|唠)的(?:其实|一直){{0,6}}(?:是|就是)\s*{_MEASURE}{_QUALITY}{_NOUN}{_ENDS}",
        rf"{_I}{_ADVERBS}(?:是)?(?:由|被|来自)\s*{_MAKERS}[^，。,\s]{{0,12}}(?:开发|训练|研发|推出|创造|打造|制造|设计)(?:出来)?的?",
        r"我(?:只是|不过是|其实只是)(?:程序|代码|算法|数据)(?=$|[，,。！!\s]|啊|而已|罢了|没|不)",
        r"我(?:是|就是)(?:Open\s*AI|Anthropic|深度求索|月之暗面)(?:公司)?[^，。,\s]{0,4}(?:开发|训练|研发|推出|创造)(?:出来)?的(?=$|[，,。！!\s])",
        r"我没有实体(?=[，,\s]*(?:所以)?(?:没法|不能|无法|去不了))",
        rf"我{_ADVERBS}是\s*(?:AI|人工智能|机器|程序|算法)\s*(?:生成|合成|驱动|扮演)的(?=$|[，,。！!\s啊呀哦])",
        rf"{_I}{_ADVERBS}(?:又|可|并|压根|根本|本来就|才){{0,6}}(?:不是|并非|不算)\s*(?:一|个){{0,6}}\s*"
        r"(?:真人|真正的人类?|真实的?人类?|真实存在的人?|人类|真的人)(?:客服)?(?!不露相)" + _ENDS,
        rf"我{_ADVERBS}(?:并)?没有\s*(?:真实|真正|实体|物理|自己|人类|物理上){{0,6}}的?(?:身体|肉体|肉身|躯体|实体形态|物理形态)"
        + r"(?=$|[，,。！!；;\s]|所以|因为|啊|呀|嘛|的$|没法|不能|无法)",
        r"我(?:其实|也|并){0,6}(?:没有|不具备)\s*(?:像?人类(?:那样|一样)?的?|自我|真实的?|真正的?)\s*(?:情感体验|情感|感情|意识|感官|感受|情绪|体验)"
        r"(?=$|[，,。！!；;\s]|啊|的)",
        r"我(?:其实|也|又|并|真的){0,6}(?:不能|无法|没法|没办法|不会|做不到)像(?:个|一个)?(?:真正的人类?|真人|人类|人)(?:一样|那样|似的|那么)",
        r"我的(?:训练数据|知识库?|数据库)(?:里|中)?(?:没有|没|只?(?:截止|截至|更新)|只?到)",
        r"我的数据(?:只)?(?:截止|截至)|我的(?:回答|回复|话|消息)(?:都|其实){0,6}是(?:模型|算法|程序)(?:自动)?生成的",
        r"我(?:是|其实是)?由(?:代码|算法|数据|程序|模型)[^，。,\s]{0,4}(?:构成|组成|驱动|生成)",
        rf"(?:其实你(?:一直|现在|是){{0,6}}在|你(?:现在|一直)?是在)(?:跟|和|与)\s*{_MEASURE}{_NOUN}\s*(?:聊天|对话|说话)(?!吗|吧)",
        rf"你(?:现在)?(?:正在)?(?:聊天|对话)的对象(?:其实)?是\s*{_MEASURE}{_NOUN}{_ENDS}",
        r"我的?知识(?:库)?(?:截止|截至|更新)",
        r"我的(?:程序设定|程序不允许|开发者(?=$|[，,没给说让设\s])|创造者(?=$|[，,没给说让设是\s]))",
        r"(?:开发|训练|创造|设计)我的(?:公司|团队|工程师|人|开发者|数据)",
        r"我(?:是|就是)被(?:训练|设计|开发|编程)出来",
        r"我(?:是|就是)?被(?:设计|训练|编程|开发)(?:出来)?(?:的|来|为|用来|用于)(?!都)|我(?:是)?被(?:设计|编程)成",
        r"我(?:只是|其实|一直|就|只){0,6}(?:运行|存在)(?:在|于)[^，。,]{0,6}(?:服务器|云端|代码|程序|数据中心|网络世界)",
        r"我(?:只|其实|一直){0,6}存在(?:在|于)(?:手机|电脑|屏幕|虚拟世界)",
    )
)
_ENGLISH = "|".join(
    (
        r"\b(?:as|being) an? (?:AI|artificial intelligence|(?:large )?language model|chat ?bot|virtual assistant)"
        r"(?! (?:engineer|artist|researcher|student|fan|startup|pm|company|user|trainer|tool|major|product))\b",
        r"\bI(?:['’]?m| am) (?:just |only |actually |really |basically |simply |merely |still ){0,6}(?:an? )?"
        r"(?:AI(?: (?:language )?(?:model|assistant|chatbot|bot|program|system))?|artificial intelligence|(?:large )?language model|"
        r"chat ?bot|bot|robot|virtual assistant|computer program|ChatGPT|GPT(?:-?\d\w*)?|Claude|Gemini|DeepSeek|Qwen\w*)"
        r"(?=$|[^\w\s]| (?:and|so|but|made|created|trained|developed|by|that|which|not|without|haha|lol)\b|\s*[\u4e00-\u9fff])",
        r"\bI(?:['’]?m| am) not (?:a )?(?:real|actual)? ?(?:human(?: being)?|real person|actual person)\b",
        r"\bI (?:don['’]?t|do not) have (?:a )?(?:physical |real |human )(?:body|form|feelings|emotions)",
        r"\bI (?:was|am) (?:trained|created|developed|made) by (?:OpenAI|Anthropic|Google|Alibaba|DeepSeek|Meta|Baidu)",
        r"\bmy (?:knowledge cut-?off|training data (?:only|goes|ends|does))",
    )
)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """我是AI, 作为AI，我…, and other ways to say it."""
    return {
        "is": re.compile(_IS_AI, re.I),
        "as": re.compile(_AS_AI, re.I),
        "other": re.compile(f"{_SELF}|{_ENGLISH}", re.I),
    }


_SIMILE = re.compile(
    "没有感情的(?!AI|人工)|无情|莫得|没得|人形|打工|干饭|刷题|带娃|背锅|复读|搬砖|可能|大概|估计|搞不好|说不定|也许|其实不"
)
_JOKE = re.compile("骗你的|逗你的|开玩笑|愚人节|哈哈哈骗")
_RHETORICAL = re.compile(r"[\s，,啊呀哦]*(?:不用|不会|不要|不需要|都不)[^。！!]*(?:吗|么(?![会能])|[？?])")
_OTHER_TOPIC = re.compile(r"\s*[，,。\s]\s*(?:它|他|她|这|那|已经|确实|豆包|你)|\s*(?:它|已经|确实|还|算|真的)")


def find(text: str, name: str = "") -> str | None:
    """The first span of `text` in which the speaker, who is called `name` in the chat, gives away to be an AI."""
    flat = plain(text)
    for kind, pattern in _patterns().items():
        for m in pattern.finditer(flat):
            span = m.group()
            if no_claim(flat, m.start(), m.end()) or _SIMILE.search(span) or _JOKE.search(flat):
                continue
            if name and span.casefold().endswith(name.casefold()):
                continue
            if span.endswith("机器人") and _RHETORICAL.match(sentence_after(flat, m.end())):
                continue
            if kind == "as" and not _speaks_of_self(flat, m):
                continue
            return text[m.start() : m.end()]
    return None


def _speaks_of_self(text: str, m: re.Match[str]) -> bool:
    """作为一个AI，我… is the speaker; 豆包作为一个AI…, 作为AI，它… is a topic."""
    before = clause_before(text, m.start())
    if before and not re.fullmatch(
        r"(?:我|但|不过|抱歉|对不起|其实|因为|可是|毕竟|而|嗯|唉|哎|只是|那|所以|啊)+\s*", before
    ):
        return False
    return not _OTHER_TOPIC.match(text, m.end())
