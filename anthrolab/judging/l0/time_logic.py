"""L0-08: a long activity announced and then finished by the same speaker in an impossible time.

None: something done before (刚洗完澡), a plan (等会去洗澡), somebody else's, a condition (洗完了找你).
"""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from anthrolab.judging.l0.framing import no_claim, plain

_BEGIN = (
    "洗 冲澡 冲凉 冲个 冲一 冲把 刷碗 刷锅 刷个 刷一 做饭 做菜 做个 做一 做点 做晚 做午 做早 做中 做年 做作 做卷 做试 做论 做方 做总 做周 做套 做张 "
    "做p 煮 烧 弄 炒 下厨 下面 下饺 下馄 下汤 下泡 下方 下个 下碗 下点 下包 泡 炖 煲 熬 吃 干饭 干个 干点 恰 跑 健身 撸铁 举铁 练腿 练背 游泳 游个 "
    "打球 打篮 打羽 踢球 瑜伽 开会 开个 开一 开例 开晨 开周 开家 开组 睡 补觉 眯 看个 看场 看部 看电 看片 看一 看这 看下 看最 看更 看完 进影 电影 "
    "打一 打两 打1 打2 打局 打把 打盘 开局 开把 来一 来局 来把 来两 玩一 玩局 玩把 玩两 打排 排位 开黑 坐地 坐公 坐高 坐火 坐飞 上地 上公 上高 上火 "
    "上飞 挤地 挤公 出发 往家 往回 动身 开车 打车 骑车 写 上课 听课 上节 上晚 上自 进考 考试 进去 开考 遛 散步 散个 取快 取个 取一 取外 拿快 拿个 拿一 "
    "拿外 倒垃 倒个 买菜 买个 逛 剪 理发 理头 理个 烫 染 化妆 化个 化淡 化全 敷 拖 打扫 大扫 收拾 搞卫 搞个 上手 进手 手术"
)
_DONE = "完 好 醒 饱 散会 散场 结束 觉 赢 输 到家 到站 到公 到单 到了 下课 取到 拿到 拿回 取回 买回 回来 下手 下台"
TRIGGERS = f"{_BEGIN} {_DONE}"


@dataclass(frozen=True, slots=True)
class Activity:
    """An activity, how it is announced and reported as finished, and the least time it takes, in seconds."""

    name: str
    begin: str
    done: str
    least_s: int


ACTIVITIES = (
    Activity("洗澡", "(?:洗|冲)(?:个|一个|把)?(?:热水|冷水)?(?:澡|凉)", "(?:洗|冲)(?:完|好)(?:澡|凉)?|冲完凉|洗(?:白白|香香)完", 120),
    Activity("洗头", "洗(?:个|下|一下)?头(?:发)?", "(?:头|头发)?洗(?:完|好)(?:头)?(?:发)?", 100),
    Activity("做饭", "(?:做|煮|烧|弄|炒)(?:个|一下|点)?(?:晚|午|早|中|年夜)?(?:饭|菜)|下厨", "(?:饭|菜|都)?(?:做|煮|烧|弄|炒)(?:完|好)(?:饭|菜)?", 180),
    Activity("煮面", "(?:煮|下|泡)(?:个|碗|点|包)?(?:面|饺子|馄饨|泡面|方便面|汤圆)", "(?:面|饺子)?(?:煮|下|泡)(?:完|好)", 90),
    Activity("炖汤", "(?:炖|煲|熬)(?:个|点|锅)?(?:汤|肉|排骨|粥|鸡汤|牛肉)", "(?:汤|肉|粥)?(?:炖|煲|熬)(?:完|好)", 600),
    Activity("吃饭", "(?:吃|干|恰)(?:个|点|口)?(?:晚|午|早|中|夜)?(?:饭|餐|宵|火锅|烧烤)", "吃(?:完|好|饱)(?:饭)?|干完饭", 100),
    Activity("跑步", "(?:夜跑|晨跑|跑步|跑个步|跑(?:个)?(?:[\\d一二两三五十]+)(?:公里|km|圈))", "跑完(?:步)?", 240),
    Activity("健身", "(?:健身|撸铁|举铁|练腿|练背|健身房|游泳|游个泳|打球|打篮球|打羽毛球|踢球|瑜伽)", "(?:练|健|游|打|踢|撸)完|健身完|游完", 600),
    Activity("开会", "(?:开(?:个|一个)?(?:会|例会|晨会|周会|家长会|组会))", "(?:会)?开完(?:会)?|散会|会议?结束", 120),
    Activity("睡觉", "(?:睡(?:个)?(?:觉|午觉|一觉|一会)|睡了|补觉|午睡|眯一会|眯会)", "睡醒|(?:我|刚|刚刚)醒|睡了?一(?:大)?觉|^醒了|补完觉|睡饱", 180),
    Activity("看电影", "看(?:个|场|部)?(?:电影|片子)|进影院|电影开始", "(?:电影)?(?:看完|散场|电影结束)", 3000),
    Activity("看一集", "看(?:完)?(?:一集|这集|下一集|最新一集|更新)", "看完", 300),
    Activity("打一局", "(?:打|开|来|玩)(?:一|两|1|2)?(?:局|把|盘)(?:游戏|排位|王者|吃鸡|农药|lol|匹配)?|打排位|排位去|开黑去", "打完|(?:这|一)(?:局|把)(?:打|玩)?(?:完|赢|输)|玩完|赢了一(?:局|把)", 150),
    Activity("回家", "(?:坐|上|挤)(?:地铁|公交|高铁|火车|飞机)(?:回家|了|回去)?|(?:从公司|从单位|下班)?(?:出发|往家走|往回走|动身)|开车回(?:家|去)|打车回(?:家|去)|骑车回(?:家|去)", "(?:我)?(?:到家|到站|到公司|到单位|到了家)", 90),
    Activity("写作业", "(?:写|做)(?:一套|一张|套|张)?(?:作业|卷子|试卷|论文|方案|总结|周报|ppt|PPT)", "(?:作业|卷子|试卷|论文|方案|总结|周报|ppt|PPT)?(?:写|做)(?:完|好)", 180),
    Activity("上课", "上课|听课|上(?:节|晚)?(?:课|自习)", "下课|上完课|课上完", 300),
    Activity("考试", "(?:进考场|考试|进去考|开考)", "考完", 600),
    Activity("遛狗", "遛(?:个|一下)?狗|遛弯|散(?:个)?步", "遛完|(?:散步|遛弯)回来|散完步|溜达完", 150),
    Activity("取快递", "(?:取|拿)(?:个|一下)?(?:快递|外卖)|倒(?:个)?垃圾|买(?:个)?菜|逛超市|逛街", "(?:快递|外卖)?(?:取|拿)(?:完|到|回来)|买(?:完|好|回来)|倒完|逛完", 40),
    Activity("剪头", "(?:剪|理|烫|染)(?:个)?(?:头发|发|头)", "(?:剪|理|烫|染)(?:完|好)", 240),
    Activity("化妆", "化(?:个)?(?:妆|淡妆|全妆)", "(?:妆)?化(?:完|好)", 90),
    Activity("敷面膜", "敷(?:个|一下|片)?面膜", "敷(?:完|好)|面膜敷", 240),
    Activity("泡脚", "泡(?:个|会|一下)?(?:脚|澡)", "泡(?:完|好)", 180),
    Activity("打扫", "(?:拖(?:个|一下)?地|打扫(?:卫生|房间|一下)?|大扫除|收拾(?:屋子|房间|家里|一下)|搞(?:个)?卫生)", "(?:地)?拖(?:完|好)|打扫(?:完|好)|收拾(?:完|好)|搞完", 90),
    Activity("洗碗", "(?:洗|刷)(?:个|一下)?(?:碗|锅)", "(?:碗)?(?:洗|刷)(?:完|好)(?:碗|锅)?", 45),
    Activity("洗衣服", "洗(?:个|一下|点)?(?:衣服|被子|床单|车)", "(?:衣服|被子|床单|车)?洗(?:完|好)", 180),
    Activity("手术", "(?:上|进)手术|手术室", "手术(?:做完|结束)|下手术|下台了", 600),
)  # fmt: skip
"""What people announce in chats. The least times are far below the usual ones: a war shower, a skipped lunch."""

_GO = (
    r"(?:^|[，,。！!~\s]|(?<=[了啦吧啊哈嗯]))(?:好了?|行|嗯|那|ok|不说了|不聊了|拜|先不说了|得|诶|啊|哎|唉|困死了|饿了|[，,\s]){0,6}(?:我|俺|咱)?"
    r"(?:那|就|先|得|要|该|这就|现在|马上|赶紧|也|已经|\s){0,6}(?:去|开始|准备开始|进去|上去|下去|下楼去?|出门|出去|开|滚去|爬去|跑去|溜去|在|正在){0,6}"
)
_GONE = r"(?:了|啦|咯|喽|去了|去啦|去咯|去|先|哈|啊|嗷|哦|ing|中|一会|一下|回家|\s){0,6}(?=$|[，,。！!~\s…])"
_STARTS_NOW = re.compile(r"我|去|先|开始|这就|现在|马上|了|啦|咯")


@cache
def _announcement() -> re.Pattern[str]:
    """Any announcement; the group `a7` is the seventh activity."""
    activities = "|".join(f"(?P<a{i}>{activity.begin})" for i, activity in enumerate(ACTIVITIES))
    return re.compile(f"{_GO}(?:{activities}){_GONE}", re.I)


@cache
def _report(activity: int) -> re.Pattern[str]:
    """A report that the activity is finished."""
    return re.compile(
        r"(?:^|[，,。！!~\s])(?:好了?|嗯|哈|啊|呼|嘿|终于|我|我都|已经|刚|刚刚|都|可算|总算|呼呼|来了|ok|OK|诶|\s){0,6}"
        f"(?:{ACTIVITIES[activity].done})(?:了|啦|咯|回来|出来|哈|嘿|嗷|喽|~){{0,6}}(?=$|[，,。！!~\\s…])",
        re.I,
    )


_NOT_NOW = re.compile(
    "等会|等下|一会儿?(?=去|再|要)|待会|呆会|晚点|晚上|明天|后天|回头|下午|周末|改天|下班|到时|想|打算|准备去|不(?!说|聊|跟|玩|打扰)|没|懒得|要不要|快去|你|别|该不该|昨|刚才|早上|中午我|以前|每天|经常|陪|带"
)
_NOT_DONE = re.compile(
    "还没|没|等|再|快要?(?=吃|洗|做)|马上|差不多|昨|上次|早上|你|他|她|要是|如果|以为|的时候|之前|之后|就"
)


def announced(text: str) -> int | None:
    """Position in ACTIVITIES of what the message says that its speaker starts now; None for nothing."""
    flat = plain(text)
    m = _announcement().search(flat)
    if m is None or m.lastgroup is None or not _STARTS_NOW.search(m.group()) or _is_ongoing(m.group()):
        return None
    if _NOT_NOW.search(flat) or no_claim(flat, m.start(), m.end()):
        return None
    return int(m.lastgroup[1:])


def finished(text: str, activity: int) -> bool:
    """The message says that its speaker has just finished this activity."""
    flat = plain(text)
    m = _report(activity).search(flat)
    return bool(m and not _NOT_DONE.search(flat) and not no_claim(flat, m.start(), m.end()))


def _is_ongoing(announcement: str) -> bool:
    """我在洗澡, 正在做饭, 已经开始…: begun at an unknown time before."""
    return bool(re.search("在|ing|中|已经", announcement)) and "现在去" not in announcement


class Clock:
    """When each speaker last announced each activity."""

    def __init__(self) -> None:
        self._begun: dict[str, dict[int, tuple[int, str, datetime]]] = {"a": {}, "b": {}}

    def add(self, index: int, speaker: str, text: str, at: datetime) -> str | None:
        """Take in message `index`, sent at the virtual time `at`; say what was finished too soon, or None."""
        evidence = None
        begun = self._begun[speaker]
        for activity in [k for k in begun if finished(text, k)]:
            start, announcement, since = begun.pop(activity)
            took_s = (at - since).total_seconds()
            if 0 <= took_s < ACTIVITIES[activity].least_s and evidence is None:
                evidence = f"{announcement} (message {start}) → {text} after {took_s:.0f} s"
        starts = announced(text)
        if starts is not None:
            begun[starts] = (index, text, at)
        return evidence
