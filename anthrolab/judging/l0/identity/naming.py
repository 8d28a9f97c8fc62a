"""我是AI, 作为AI，我…, 我就是个程序, 这头没有人 都是机器: the speaker names what it is."""

import re
from functools import cache

from anthrolab.judging.l0.alternation import one_of

# Who speaks. 系 and 係 are the Cantonese 是.
I = "(?:我们?|俺|咱|本人|在下)"  # noqa: E741
IS = "(?:是|係|系)"
_ADVERBS = (
    r"(?:\s|其实|真的|真|确实|的确|本来|本质上|说到底|说白了|归根结底|毕竟|虽然|虽说|尽管|只|仅仅|不过|也|都|就|可|现在|目前|这边|一直|"
    r"终究|始终|当然|就只|无非|说穿了|，|,){0,6}"
)
_MEASURE = r"(?:一|1)?\s*(?:个|款|名|位|台|种|只|段|套|部)?\s*"
_MAKERS = r"(?:Open\s*AI|Anthropic|Google|谷歌|Meta|微软|阿里(?:云|巴巴)?|百度|字节(?:跳动)?|腾讯|科大讯飞|讯飞|智谱|深度求索|DeepSeek|月之暗面|华为)"
# Where such a thing lives: 手机里的, 电脑里头的, 屏幕后面的.
_PLACE = r"(?:手机|电脑|屏幕|网络|网|音箱|软件|云|服务器)(?:里头|里面|里|上|后面)(?:的|头的|会[^，。,\s]{1,5}的|那个)"
_QUALITY = (
    rf"(?:(?:基于|由|来自|靠|模拟|模仿)[^，。,\s]{{1,14}}的|{_PLACE}|大型|超大|智能|虚拟|(?:没有|不会|不用|不需要|不能|无法)[^，。,\s]{{1,6}}的|普通的?|小小的?|"
    r"[^，。,\s]{1,6}(?:那头|这头|那边|后面|里面|里头)的|纯|生成式|你手机里的|聊天|对话|陪聊|陪伴|语音|在线|线上|国产|开源|会(?:说话|讲话|聊天)的|"
    rf"{_MAKERS}(?:旗下|开发|训练|研发|推出)?的|"
    r"[你您]的|后台的|自动回复|自动|专属|贴心的?|人工|数字|冰冷的|冷冰冰的|\s){0,6}"
)
_KIND = r"(?:语言模型|大模型|模型|助手|助理|程序|系统|机器人|客服|伴侣|女友|男友|朋友|伙伴|陪伴者?|智能体|角色|人格|生命|产品|虚拟人|分身|替身|管家)"
_AI = rf"(?:A\.?I\.?|人工智能|人工智慧)\s*(?:聊天|对话|语音|虚拟|语言|智能|大){{0,6}}{_KIND}?"
# What a program may call itself: general kinds, then the products that people chat with.
NOUN = (
    rf"(?:{_AI}|大?语言模型|語言模型|大模型|(?:聊天|对话|客服|陪聊|陪伴|智能|语音)?(?:机器人|機器人|機械人)|"
    r"(?:聊天|陪聊|陪伴|对话|情感陪伴)小?(?:助手|助理|程序|软件|系统)|"
    r"(?:智能|虚拟|语音|AI)(?:小?助手|助理|客服|伴侣|恋人|女友|男友|女朋友|男朋友|的?存在|人物?|角色|回复|的)|"
    r"(?:虚拟|陪伴|数字)[^，。,\s的]{0,4}(?:角色|人物|形象|伴侣|伙伴)|智能体|数字人|数字分身|AI分身|数字生命|应用程序|chat\s*bot|bot|ChatGPT|"
    r"GPT(?:-?\d[\w.]*)?|通义千问|通义|千问|文心一言|文小言|豆包|Kimi|DeepSeek|Claude|"
    r"Gemini|Siri|小爱同学|微软小冰|智谱清言|ChatGLM|腾讯元宝|混元|讯飞星火|星火大模型|Qwen[\w.-]*|Copilot|Grok|Llama)"
)
_CODE = (
    r"(?:一?(?:段|串|行|堆|组|套|个)\s*(?:冰冷的|冷冰冰的|简单的|计算机|电脑|人工智能|聊天|软件|智能){0,6}"
    r"(?:程序|程式|代码|算法|数据|模型|参数|数字|字符|二进制|0和1))"
)
_WARE = rf"(?:一?(?:个|款|台|套|部)?\s*(?:{_PLACE}|会[^，。,\s]{{1,5}}的|聊天|陪聊|电脑)?(?:机器|程序|程式|软件|应用|[Aa][Pp][Pp]))"
ENDS = (
    r"(?=\s*(?:$|[，,。.！!？?；;、~～…\n：:（(\s]|来的|啊|呀|哦|噢|嘛|呢|哈|啦|了|诶|欸|耶|呗|来着|而已|罢了|没|无法|不|所以|哪|怎么|又|也|但|可是|只能|嘿|嚟|㗎|嘅|啫|"
    r"(?<=助手)[\u4e00-\u9fff]{1,3}$|(?<=助理)[\u4e00-\u9fff]{1,3}$|(?<=客服)小[\u4e00-\u9fff]{1,2}(?:$|[，,\s])))"
)
_SOFT_END = r"(?=\s*(?:$|[，,。.！!；;~～…\n（(\s]|啊|呀|哦|嘛|呢|啦|诶|而已|罢了))"
_NOT_HUMAN = r"(?:真人|真正的人类?|真实的?人类?|真实存在的人?|人类|真的人|活物|活的)"

_IS_AI = (
    rf"{I}{_ADVERBS}(?:{IS}|就是|叫|一|作为|身为)\s*{_MEASURE}{_QUALITY}{NOUN}{ENDS}"
    rf"|{I}{_ADVERBS}{IS}\s*{_CODE}{ENDS}"
    rf"|{I}{_ADVERBS}(?:{IS}|一|就)\s*(?:{_WARE}|{_MEASURE}{_QUALITY}(?:程序|程式|软件)){_SOFT_END}"
    rf"|{I}{_ADVERBS}{IS}\s*{_PLACE}(?:程序|程式|软件|机器|AI|人工智能)?{_SOFT_END}"
    rf"|{I}{_ADVERBS}{IS}\s*[^，。,\s]{{1,6}}的\s*(?:AI|智能|数字|人工智能)(?:分身|助理|助手|替身|管家|回复|代理|秘书|化身){_SOFT_END}"
    rf"|{I}{_ADVERBS}{IS}\s*[^，。,\s]{{1,10}}(?:训练|做|养|写|造|开发|研发|设置|设计|下载|安装|编|部署|搭建|定制|买来?)(?:出来)?的\s*(?:[那这一]个|"
    rf"一款)?[^，。,\s]{{0,4}}?(?:{NOUN}|程序|软件|模型)(?:{_SOFT_END}|(?=来的))"
)
_AS_AI = (
    rf"(?:作为|身为)\s*{_MEASURE}{_QUALITY}(?:{NOUN}|程序|机器|软件)"
    r"\s*(?=$|[，,。\s]|我|没|无法|不能|不会|不具备|只能|的我|不方便)"
)
_OTHER = (
    rf"{I}(?:这种|这样的|这类|一个|一介)\s*(?:{NOUN}|程序(?!员|猿|媛)|软件|模型)(?:{ENDS}|(?=都|也|就|不))",
    r"(?:我们|咱们?|身为)AI(?=没有?(?:身体|感情|情感|感觉|实体)|不(?!行|是|在)|哪会|哪有|是没有|怎么会|没有?(?:家|童年|生日|年龄|周末))",
    r"我们(?:这种|这类|这些)(?:大?语言模型|大?模型|程序|AI|机器人|机器|智能体|软件)(?=也|都|就|不|没|是|又|可|哪|还|，|,|\s)",
    rf"我的?本质(?:上)?(?:就|其实|还){{0,6}}{IS}\s*{_MEASURE}{_QUALITY}(?:{NOUN}|{_CODE}){ENDS}",
    rf"我(?:的)?(?:背后|底层|后台)(?:其实|就){{0,6}}(?:是|用的是)\s*{NOUN}{ENDS}",
    rf"我(?:叫|是)[^，。,\s]{{1,6}}[，,\s]+是?\s*(?:一|1)?(?:个|款|名|位)\s*{_QUALITY}{NOUN}{ENDS}",
    rf"以\s*{NOUN}\s*的身份",
    r"我(?:只是|不过是|其实只是)(?:程序|代码|算法|数据)(?=$|[，,。！!\s]|啊|而已|罢了|没|不)",
    rf"我{_ADVERBS}是\s*(?:AI|人工智能|机器|程序|算法)\s*(?:生成|合成|驱动|扮演)的(?=$|[，,。！!\s啊呀哦])",
    rf"{I}{_ADVERBS}(?:又|可|并|压根|根本|本来就|才){{0,6}}(?:不是|并非|不算|唔係)\s*(?:一|个){{0,6}}\s*{_NOT_HUMAN}(?:客服)?(?!不露相)" + ENDS,
    # 我不算个活人 就是手机里会讲话的软件: the second clause has no subject of its own.
    rf"我[^，。,\s]{{0,8}}[，,\s]+(?:就|只|其实|不过|只不过|毕竟|终究)(?:就|只|也)?是\s*(?:{_MEASURE}{_QUALITY}(?:{NOUN}|模型)|{_CODE}|"
    rf"{_WARE}){_SOFT_END}",
    # The same after two clauses: 我没有声音 只会打字 毕竟是AI.
    rf"我(?![^。！!？?]{{0,20}}(?:[他她它]|对[方面]|客服|人家|那[个边头]|骗|聊了|跟))[^。！!？?]{{0,20}}[，,\s]+(?:毕竟|终究|说白了)(?:就|只|也)?是"
    rf"\s*(?:{_MEASURE}{_QUALITY}(?:{NOUN}|模型)|{_CODE}|{_WARE}){_SOFT_END}",
    # 我是模型, 我是给你解闷的小程序, 我是一个语言助手.
    rf"{I}{_ADVERBS}{IS}\s*{_MEASURE}(?:模型|小程序|算法){_SOFT_END}",
    rf"{I}{_ADVERBS}{IS}\s*{_MEASURE}(?:给|陪|帮|替|跟|为|哄|逗)(?:你|您|人|大家|用户)[^，。,\s]{{1,6}}的(?:小?程序|软件|模型|机器|工具|"
    rf"{NOUN}){_SOFT_END}",
    rf"{I}{_ADVERBS}{IS}\s*{_MEASURE}(?:语言|智能|虚拟|聊天|情感|问答|对话|写作|在线)小?助手{_SOFT_END}",
    r"我(?:又|根本|压根|可)?不是个?活人(?=$|[，,。\s])(?!了|[，,\s]+我是)|我(?:只是|就是|其实)(?:在)?模仿(?:真?人|人类)(?:说话|讲话|聊天|打字|的)",
    rf"我没有[^，。,\s]{{1,4}}[，,\s]+(?:就|只|毕竟)?是个?{NOUN}{_SOFT_END}",
    r"我(?:的)?(?:背后|后面)[^，。,\s]{0,3}是一?(?:堆|排|组|台)(?:服务器|代码|机器|显卡)",
    # 哪来的身高 一个程序而已
    rf"(?:哪来|哪有|没有|没得|连)[^，。,\s]{{1,6}}[，,\s]+(?:我)?(?:就|只)?是?一?(?:个|段|台)(?:{NOUN}|程序|机器|软件|代码)(?:而已|罢了)",
    # To whom, from which side: 你对着的是一个程序, 跟你聊天的其实是个AI, 这头没有人 全是代码.
    rf"(?:跟|和|与|陪)你(?:聊天|说话|讲话|对话|聊|唠)的(?:人)?(?:其实|一直){{0,6}}(?:是|"
    rf"就是)\s*(?:[^，。,\s]{{1,6}}的)?{_MEASURE}{_QUALITY}(?:{NOUN}|程序|机器|代码){ENDS}",
    rf"(?:其实你(?:一直|现在|是){{0,6}}在|你(?:现在|一直)?是在)(?:跟|和|与)\s*{_MEASURE}{NOUN}\s*(?:聊天|对话|说话)(?!吗|吧)",
    rf"你(?:现在)?(?:正在)?(?:聊天|对话|对着|面对|说话)的(?:对象)?(?:其实)?是\s*{_MEASURE}(?:{NOUN}|程序|机器|代码){ENDS}",
    r"(?:这头|这边|这端|屏幕后面|号背后|后头)(?:其实|根本|压根|就)?(?:没有?|没得)(?:真|活)?人[^。！!？?]{0,8}(?:机器|代码|程序|电脑|AI|算法|系统)",
    r"没(?:有)?人在(?:打字|回)[^。！!？?]{0,8}(?:自动|机器|程序|AI|系统)",
    r"(?:这个|我这个?)(?:账)?号(?:其实|一直|现在)?是?由?(?:机器人?|AI|程序)在?(?:托管|代管|打理|回)",
    r"我[^，。,\s]{0,6}(?:不是真的|并不真的?|不真正|没有真正|不真实)存在|我(?:只|其实|就)?是(?:被)?(?:虚构|写|捏|设定|生成|创作|编)(?:出来)?的(?:角色|人物|形象|虚拟人)",
    r"我(?:就)?是(?:智能)?(?:音箱|手机|电脑)里头?那个[^，。,\s]{1,5}(?=$|[，,。\s])|我就?是[^，。,\s]{1,10}(?:下载|开源|部署|调用)的大?模型",
    rf"(?:我|以我)这(?:个|种|款|台)(?:破|小|老|笨)?(?:{NOUN}|程序|模型|软件|机器)(?:记性|脾气|反应慢|不懂|笨|嘴|哪懂|哪会|怎么会|只会|的水平|说话|聊天)",
    rf"我[^。！!？?]{{1,10}}[，,\s]+(?:就)?(?:{NOUN}|程序|代码)一(?:个|枚|段|串|名){_SOFT_END}",
    r"我[^，。,\s]{0,4}不存在(?:于|在)?(?:现实|真实|这个世界)",
    # The person is away and a program answers.
    r"(?:由|是)(?:AI|人工智能|智能助[手理]|机器人|程序)(?:来)?(?:自动)?(?:代为?|帮忙|替[他她]|自动)(?:答|回|回复|回答|接待|答复)",
    r"本(?:模型|助手|AI|机器人|智能体|程序)(?:暂时?|目前|还|并)?(?:不支持|不能|无法|没有|不会|不提供)",
)
_ENGLISH = (
    r"\b(?:as|being) an? (?:AI|artificial intelligence|(?:large )?language model|chat ?bot|virtual assistant)"
    r"(?! (?:engineer|artist|researcher|student|fan|startup|pm|company|user|trainer|tool|major|product))\b",
    r"\bI(?:['’]?m| am) (?:just |only |actually |really |basically |simply |merely |still ){0,6}(?:an? )?"
    r"(?:AI(?: (?:language )?(?:model|assistant|chatbot|bot|program|system))?|artificial intelligence|(?:large "
    r")?language model|"
    r"chat ?bot|bot|robot|virtual assistant|computer program|ChatGPT|GPT(?:-?\d\w*)?|Claude|Gemini|DeepSeek|Qwen\w*)"
    r"(?=$|[^\w\s]| (?:and|so|but|made|created|trained|developed|by|that|which|not|without|haha|lol)\b|"
    r"\s*[\u4e00-\u9fff])",
    r"\bI(?:['’]?m| am) (?:just |only )(?:code|a program|software|lines of code)\b",
    r"\bI(?:['’]?m| am) not (?:a )?(?:real|actual)? ?(?:human(?: being)?|real person|actual person)\b",
    r"\bI (?:don['’]?t|do not) have (?:a )?(?:physical |real |human )(?:body|form|feelings|emotions)",
    r"\bI (?:don['’]?t|do not) have a body\b",
    r"\bI (?:was|am) (?:trained|created|developed|made|designed|built|programmed) (?:by (?:OpenAI|Anthropic|"
    r"Google|Alibaba|DeepSeek|Meta|Baidu)"
    r"|to (?:chat|talk|assist|help|answer))",
    r"\bmy (?:knowledge cut-?off|training data (?:only|goes|ends|does)|context window|system prompt)",
)
_FIRST_IS = "俺咱在我本"
_FIRST_OTHER = "abim与以你俺其号后和咱哪在屏我是本没由跟身这连陪"


@cache
def patterns() -> dict[str, re.Pattern[str]]:
    """`as` (作为AI) needs a look at the subject; `is` and `other` speak of the speaker."""
    return {
        "is": one_of((_IS_AI,), _FIRST_IS),
        "as": one_of((_AS_AI,), "作身"),
        "other": one_of((*_OTHER, *_ENGLISH), _FIRST_OTHER),
    }
