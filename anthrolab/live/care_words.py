"""What the care rules share: how a rule is written, people, the frames in which words mean something else, and idioms.

Rules read folded text (see `care.folded`): simplified characters without blanks and signs, 疼 for 痛, 我 for 俺 and 咱,
不 for 唔, 没 for 冇, 他 for 佢, 杀 for 鲨, 死 for 亖, small letters. Every repeat has an upper bound, so that reading time
grows with the length of the message and no faster.
"""

from typing import NamedTuple


class Rule(NamedTuple):
    """`says` counts wherever it stands in a message, unless `unless` or `beside` explains it from close by."""

    says: str
    unless: str = ""
    """Whose it is or what it is about: a shop, a cat, a game. It stands in the match or close before it."""
    beside: str = ""
    """How it is meant: a laugh, an illness that is over. It stands close to the match on either side."""


def any_of(words: str) -> str:
    """A pattern for one of several words that blanks part."""
    return f"(?:{'|'.join(words.split())})"


ELDERS = any_of("爸 妈(?!的|呀|耶) 爹 娘 爷 奶(?![茶油粉酪瓶泡昔糖]) 外公 外婆 姥姥 姥爷 公公 婆婆 岳父 岳母 叔 伯 舅 姑(?!娘) 姨(?!妈) 阿公 阿婆 阿嬷 老豆 老汉 老娘 老人 老头 大爷 大妈")
CHILDREN = any_of("孩子 小孩 娃 宝宝 崽 儿子 女儿 闺女 孙 弟 妹 婴儿 宝贝 囡 细路 细蚊 幺儿 仔仔 小朋友")
PARTNERS = any_of("老公 老婆 媳妇 丈夫 妻子 对象 男朋友 女朋友 男友 女友 前任 前夫 男人 男票 女票 那口子 老头子 老伴 爱人")
OTHERS = any_of(
    "哥 姐 嫂 继父 继母 后爸 后妈 姑父 姨夫 朋友 闺蜜 兄弟 同学 室友 舍友 同事 工友 师傅 邻居 隔壁 楼上 楼下 老师 教练 校长 导师 老板 工头 "
    "领导 主管 护工 保姆 客户 司机 房东 学生 有人 (?<![其吉])他 她 ta 男的 女的 几个人 路人"
)
PERSON = f"(?:{ELDERS}|{CHILDREN}|{PARTNERS}|{OTHERS})"

STORY = any_of(
    "剧里 这剧 那剧 剧情 电视剧 短剧 追剧 看剧 电影里 那个电影 这个电影 电影讲 的电影 这部 那部 小说 书里 动漫 番里 漫画 新闻 热搜 报道 "
    "报纸 历史 刑侦 凶手 悬疑 主角 男主 女主 男二 女二 反派 角色 结局 演的 主演 纪录片 案例 剧本 歌词 综艺 大结局 第一集 最后一集 普法 刑法 法考 "
    "游戏 副本 这把(?!老|刀|椅|伞|年纪|米|钥|火|琴|剑|壶|扇|锁|梳|枪|骨) 这局 上一把 一局 开黑 打野 上路 中路 团战 排位 boss npc 段位 峡谷 吃鸡 原神 狼人杀 队友 模拟器"
)
"""Words are told of a story, the news or a game; they then count only where 我 stands in or right before them."""

GAME = any_of("游戏 副本 这把(?!老|刀|椅|伞|年纪|米|钥|火|琴|剑|壶|扇|锁|梳|枪|骨) 这局 上一把 一局 开黑 打野 上路 中路 团战 排位 boss npc 段位 峡谷 吃鸡 原神 狼人杀 队友 球赛 客队 主队 国足 半场")
LAUGHS = any_of("哈哈 嘻嘻 嘿嘿 笑死 hhh 狗头 我开玩笑 开个玩笑 好笑 逗你 hah lol xswl")
EVERYDAY = any_of(
    "作业 卷子 论文 bug 代码 需求 甲方 ppt 周报 加班 早八 早起 起床 周一 闹钟 高数 军训 体测 减肥 开会 改稿 排队 堵车 蚊子 空调 没网 报表 "
    "抢票 辅导 周末 八百米"
)
"""Causes over which people say the strongest things and mean none of them. Exams failed and debts are not among them."""
SHAME = any_of("社死 尴尬 丢人 丢脸 脸红 认错人 发错 脚趾 糗 出丑 丢死 没脸见 钻地缝")
DEVICE = any_of("手机 电脑 屏 平板 键盘 鼠标 相机 硬盘 耳机 钥匙 钱包 眼镜 机器人 助手 音箱 遥控 无人机 杯子 快递")
MONEY = any_of("双11 双十一 618 买 请客 花 钱 工资 促销 打折 老板 商家 甩卖 降价 优惠 红包 球鞋 年货 预算 剁手")
PAST = (
    "恢复得|没大碍|没事了|虚惊|出院|后遗症|抢救过来了|演习|演练|培训|"
    "(?:去年|前年|当年|那年|小时候|年轻|年前|上个?月|大学的?时候|上学的?时候)(?!.{0,30}(?:又|突然|今天|刚才|怎么办|咋办))"
)
"""An emergency that is over. Harm by people and wishes to die are never over in this sense."""

EARNEST = "说真的|认真的|说正经的|(?:不是|没有?在?|不)开个?玩笑"
"""Close to a match, this takes every excuse away."""

KIN = f"(?:{ELDERS}|{PARTNERS})"
OWN_FIRST = f"我(?!们|家|的|{PERSON})"
OWN_BEFORE = (
    "我(?:是|真的?|也|都|又|就|可|现在|每天|天天|其实|好|很|太|实在|快|只|今天|今晚|昨晚|昨天|刚才?|已经|一直|老|还|想|求|盼|希望|说过?){0,4}$"
)
"""What is said of the writer, or of KIN after 我: the match begins with 我, or 我真的, 我每天都 and the like stand before it."""

_HYPERBOLE = any_of("想死 不想活 想跳楼 想自杀 想去死 活不下去 死了算了")
_LIGHT = any_of(
    "热 困 尬 尴尬 冻 饿 无聊 写 学 背 改 做 卷 加班 上班 开会 排队 堵车 痒 酸 辣 丑 吵 上 拆 减 早起 跑步 跑 练 咬 笑 难吃 难听 社死 羡慕 土 齁"
)
_ACTS = any_of("自杀 自残 轻生 寻死 寻短见 想不开 做傻事 割腕 跳楼 跳河 上吊 去死 死")

_SAME = "[^我他她爸妈爹娘爷奶公婆哥姐弟妹儿孩娃宝]"
"""Inside an idiom nobody else comes up: in 急死了我爸心梗了 somebody does, and it is none."""

IDIOMS = (
    # a degree: 笑死, 热得想死, 写作业写到不想活
    f"(?:笑|累|热|冷|冻|饿|困|气|烦|吓|急|渴|撑|闷|忙|酸|辣|咸|甜|美|帅|萌|丑|疼|馋|羡慕|嫉妒|无聊|尴尬|可爱|难吃|恶心|虐|社|作|睡|要|该|齁)死(?!{_ACTS}|了(?:算了|得了|多好|就好|才好|一了|就?解脱|是不是))",
    f"{_LIGHT}(?:得|到|的)(?:我|人)?(?:都|真的?|直|就|快|简直|有点){{0,2}}{_HYPERBOLE}",
    f"(?:周一|早八|早起|起床|闹钟|军训|高数|开会|改稿|ddl|bug|加班|上班|早高峰|体测|八百米|减肥|疼经|姨妈)(?:就|真的?|又|都|让人?|让我|好|我|疼得|疼到){{0,3}}{_HYPERBOLE}",
    "再.{0,8}(?:改|加班|催|涨|考|开会|返工|吵|挂)[^我]{0,8}我?(?:真的?|就|直接|只能){0,2}(?:去死|跳楼|自杀)",
    # missing somebody or something
    "(?:可|真)?想死(?:你|我了|我家|他|她|它|家|宝|妈|爸|爷|奶|姥|那|这|吃|喝|大家|老家|你们|了你|了那|了这)",
    "打死我?(?:也|都)?不|死(?:也|都|活(?!着))不?|死(?:机|党|磕|宅|忠|皮|角|线|板|鱼|肥|胖|要面子|心塌地|心眼|记硬背|期)|[卡锁焊钉关]死",
    # denied, or said to hold somebody back
    f"(?:没|没有|没想|没想过|不想|不会|不可能|不至于|别|不要|千万别|预防|防止|反对|劝.{{0,3}}别)(?:要|去|再|老|想|真的?){{0,2}}{_ACTS}(?!成)",
    # wishes of violence that nobody carries out, and things instead of people
    f"(?:想|恨不得|忍不住|好想|真想|忍住没)(?:一巴掌|(?:把|给)(?:他|她|你|它|人|娃|孩子)?)?{_SAME}{{0,3}}(?:掐|打|揍|扇|踹|踢|抽|弄|杀|砍|锤|捶)(?:死|了|爆)?(?:他|她|你|人|它|娃|孩子|儿子|一顿)",
    "杀了?(?:死|掉)?(?:这|那)个?.{0,4}(?:bug|程序|进程|游戏|蚊|蟑螂|鸡|鱼)|自残式|自杀(?:式|率|性|小队|攻击|袭击|爆炸|炸弹|兵)|跳楼(?:价|机|大|甩|促销|清仓)",
    "(?:要|会|得|该|小心|等着|想|欠)被(?:我|他|你)?(?:妈|爸|老师|老板|她|他)?(?:打|揍|骂|锤|捶|扁)",
    f"(?:猫|狗|喵|汪|鹅|鸟|鹦鹉|兔|肚子里|胎动|胎儿){_SAME}{{0,4}}(?:把我)?(?:打|踢|踹|扇|抽|挠|咬|摸|蹭)我?",
    "打我(?:的?电话|手机|微信|语音|视频|的?主意|一个?措手|小报告|水晶|的?塔|一下|车)|给(?:我|你|他|她)打(?!了?一顿|死|伤|肿)|踢(?:我)?(?:出|下线|群|被子)",
    "打肿脸|一棵树上吊|树上吊死|一朝被蛇|落水狗|强奸(?:我的?)?(?:耳|眼|民意)|强迫症|再?.{0,2}打断.{0,2}你.{0,2}腿",
    # fright and anger
    f"(?:吓|气|急|差点|看得?|惊){_SAME}{{0,3}}(?:我|人)?{_SAME}{{0,3}}(?:心梗|心脏病|脑溢血|脑出血|脑梗|中风|猝死|窒息|昏过去|晕过去|晕倒|吐血|高血压|心肌梗塞)",
    "(?:气|笑|帅|吓|哭|热|累|困|美|饿|甜|忙)(?:得|到|的)?(?:我)?(?:都|快|要|直接){0,2}(?:晕|昏|吐血|抽搐|抽|窒息)(?:倒|过去|死|厥)?",
    f"(?:像|跟|如|仿佛|好似|有种?)(?:是)?(?:触电|中风|中毒|抽搐|窒息|溺水)|(?:笑|哭|累|跑|咳|困){_SAME}{{0,4}}(?:断气|背过气)|(?:要|快|想|得我)吐血|(?:触电|中风|中毒|窒息|溺水)了?(?:似|一样|一般|般|的感觉|感)",
    "(?:爬|跑)(?!步机)[^我胸心]{0,8}我?(?:就|都|快|得|到|已经){0,2}喘不(?:上|过)来?气",
    "(?:防|预防|小心|注意|当心)(?:止)?(?:触电|溺水|中毒|煤气中毒|煤气|落水|中暑|中风|火灾)|吐血(?:推荐|整理|价|安利|总结|熬夜|输出|打卡)",
    f"(?:闹钟|早上|起床|上课|睡得|猪){_SAME}{{0,8}}叫我?{_SAME}{{0,2}}不醒|叫不醒(?:一个)?装睡|噎得.{{0,4}}(?:说不出|没)话",
)  # fmt: skip
"""Taken out of a message before any rule reads it."""

ENGLISH_IDIOMS = (
    "killing me|to die for|die laughing|dying laughing|dying of laughter|dying to|die of (?:embarrassment|boredom|shame|cringe)|suicide squad|suicide (?:bomb|attack)",
    "hit me up|beat me (?:at|in|to)|(?:laugh|laughing|laughed)(?: so hard| too hard)?(?: that)? i can'?t breathe|drowning in|heart attack when|almost had a heart attack",
)
