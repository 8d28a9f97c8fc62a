"""Names: surnames, and given names by sex and birth cohort. Code hands them out, since models write the same few again and again."""

import random
from collections.abc import Collection

from anthrolab.cards.persona import Gender

_SURNAMES = (
    "王 李 张 刘 陈 杨 黄 赵 吴 周 徐 孙 马 朱 胡 郭 何 高 林 罗 郑 梁 谢 宋 唐 许 韩 冯 邓 曹 彭 曾 肖 田 董 袁 潘 于 蒋 蔡 余 杜 叶 程 苏 "
    "魏 吕 丁 任 沈 姚 卢 姜 崔 钟 谭 陆 汪 范 金 石 廖 贾 夏 韦 付 方 白 邹 孟 熊 秦 邱 江 尹 薛 闫 段 雷 侯 龙 史 陶 黎 贺 顾 毛 郝 龚 邵 万 "
    "钱 严 覃 武 戴 莫 孔 向 汤"
).split()
"""The hundred most frequent ones or so; each comes once before one comes again."""

_GIVEN: dict[Gender, dict[int, str]] = {
    "女": {
        0: "桂兰 秀英 玉珍 淑芬 凤英 素琴 春梅 桂香 秀珍 月娥 玉兰 惠芳 金花 翠英 兰芝 巧云 淑贞 秋菊 银娣 美珍 爱华 素芳 腊梅 菊芬 彩霞 雪琴",
        1965: "丽华 红梅 小燕 建英 秀丽 海霞 晓红 卫红 艳萍 丽娟 玉霞 春燕 慧敏 雪梅 美玲 志红 文娟 冬梅 亚琴 小莉 爱萍 丽君 云霞 莉莉 敏 静",
        1980: "晓燕 丹丹 婷婷 佳 倩 丽萍 海燕 雅琴 娟 莎莎 晶晶 璐 媛媛 小玲 颖 蓉 晓琳 梅 雯 艳 洁 思敏 燕妮 玲玲 苗苗 桃",
        1995: "雨桐 思琪 嘉怡 欣然 晓彤 梦瑶 雅婷 佳琪 诗涵 文静 可欣 若兰 心怡 子萱 雪莹 婧 钰 昕 书瑶 语嫣 靖雯 艺 晗 一诺 梓琳 楚楚",
    },
    "男": {
        0: "国祥 建国 德福 长有 福生 文斌 金宝 永贵 树林 志高 根生 宝山 玉成 忠良 兴旺 炳坤 茂才 水根 传喜 立本 耀祖 学文 明德 有田 守义 广才",
        1965: "建军 卫东 国庆 志强 永飞 海波 立新 文军 红兵 建平 新民 学军 晓东 家明 少华 东升 永强 振华 启明 春生 保国 卫国 伟民 跃进 友良 光辉",
        1980: "伟 磊 鹏飞 俊杰 海涛 志刚 超 小龙 晓峰 浩 斌 凯 勇 文博 亮 宁 建伟 冬冬 立群 卫平 大伟 振宇 诚 波 泽宁",
        1995: "子航 浩然 宇轩 梓豪 嘉诚 俊熙 博文 一鸣 思远 天佑 晨曦 家豪 志锋 祥泽 逸飞 铭 睿 昊 泽宇 明轩 锐 承志 书恒 知行 皓 启航",
    },
}
"""Given names by the year of birth from which they are common (in rough cohorts)."""


class Names:
    """Hands out full names, each once. `taken`: names that are not to be given."""

    def __init__(self, rng: random.Random, taken: Collection[str] = ()) -> None:
        self._rng = rng
        self._taken = set(taken)
        self._waiting: dict[object, list[str]] = {}

    def give(self, gender: Gender, born: int) -> str:
        """A name that fits; ValueError when all of the cohort are given out (there are about 2,600 of each)."""
        cohort = max(year for year in _GIVEN[gender] if year <= born)
        given = _GIVEN[gender][cohort].split()
        for _ in range(4 * len(given) * len(_SURNAMES)):
            name = self._next("", _SURNAMES) + self._next((gender, cohort), given)
            if name not in self._taken:
                self._taken.add(name)
                return name
        raise ValueError("no name is left")

    def _next(self, which: object, values: Collection[str]) -> str:
        """From a shuffled pile, and a new pile when it is used up."""
        if not self._waiting.get(which):
            pile = list(values)
            self._rng.shuffle(pile)
            self._waiting[which] = pile
        return self._waiting[which].pop()
