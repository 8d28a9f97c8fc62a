"""Names of places in China by province, and of some places abroad, for comparing where people say to live.

Only names that people use for where they live or come from; names that are also everyday words (东方, 来宾, 朝阳)
are left out. `<` marks a county-level place and, after it, the prefecture it belongs to.
"""

from functools import lru_cache

_BY_PROVINCE = """
北京 帝都 海淀 通州区 昌平 大兴区 丰台 顺义 回龙观 望京
上海 魔都 浦东 徐汇 松江 闵行 嘉定 青浦 虹口 静安 奉贤
天津 滨海新区 塘沽
重庆 山城 渝北 江北区 万州 涪陵 永川
河北 石家庄 唐山 秦皇岛 邯郸 邢台 保定 张家口 承德 沧州 廊坊 衡水 燕郊<廊坊 雄安<保定
山西 太原 大同 阳泉 长治 晋城 朔州 晋中 运城 忻州 临汾 吕梁
内蒙古 内蒙 呼和浩特 呼市 包头 乌海 赤峰 通辽 鄂尔多斯 呼伦贝尔 巴彦淖尔 乌兰察布 锡林郭勒
辽宁 沈阳 大连 鞍山 抚顺 本溪 丹东 锦州 营口 阜新 辽阳 盘锦 铁岭 葫芦岛
吉林 长春 四平 辽源 通化 白山 松原 白城 延边 延吉<延边
黑龙江 哈尔滨 齐齐哈尔 鸡西 鹤岗 双鸭山 大庆 伊春 佳木斯 七台河 牡丹江 黑河 绥化 大兴安岭
江苏 南京 无锡 徐州 常州 苏州 南通 连云港 淮安 盐城 扬州 镇江 泰州 宿迁 昆山<苏州 常熟<苏州 张家港<苏州 太仓<苏州 江阴<无锡 宜兴<无锡 阜宁<盐城
浙江 杭州 宁波 温州 嘉兴 湖州 绍兴 金华 衢州 舟山 台州 丽水 义乌<金华 慈溪<宁波 余姚<宁波 诸暨<绍兴 乐清<温州 桐乡<嘉兴 海宁<嘉兴 南浔<湖州
安徽 合肥 芜湖 蚌埠 淮南 马鞍山 淮北 铜陵 安庆 黄山 滁州 阜阳 宿州 六安 亳州 池州 宣城
福建 福州 厦门 莆田 三明 泉州 漳州 南平 龙岩 宁德 晋江<泉州 石狮<泉州
江西 南昌 景德镇 萍乡 九江 新余 鹰潭 赣州 吉安 宜春 抚州 上饶
山东 济南 青岛 淄博 枣庄 东营 烟台 潍坊 济宁 泰安 威海 日照 临沂 德州 聊城 滨州 菏泽 曲阜<济宁 寿光<潍坊
河南 郑州 开封 洛阳 平顶山 安阳 鹤壁 新乡 焦作 濮阳 许昌 漯河 三门峡 南阳 商丘 信阳 周口 驻马店 济源 郸城<周口
湖北 武汉 黄石 十堰 宜昌 襄阳 鄂州 荆门 孝感 荆州 黄冈 咸宁 随州 恩施 仙桃 潜江 建始<恩施
湖南 长沙 株洲 湘潭 衡阳 邵阳 岳阳 常德 张家界 益阳 郴州 永州 怀化 娄底 湘西
广东 广州 深圳 珠海 汕头 佛山 韶关 湛江 肇庆 江门 茂名 惠州 梅州 汕尾 河源 阳江 清远 东莞 中山 潮州 揭阳 云浮 顺德<佛山 南海区<佛山 番禺<广州 潮汕
广西 南宁 柳州 桂林 梧州 北海 防城港 钦州 贵港 玉林 百色 贺州 河池 崇左
海南 海口 三亚 儋州 三沙 琼海 万宁
四川 成都 蓉城 自贡 攀枝花 泸州 德阳 绵阳 广元 遂宁 内江 乐山 南充 眉山 宜宾 广安 达州 雅安 巴中 资阳 阿坝 甘孜 凉山 西昌<凉山
贵州 贵阳 六盘水 遵义 安顺 毕节 铜仁 凯里
云南 昆明 曲靖 玉溪 保山 昭通 丽江 普洱 临沧 大理 西双版纳 红河 文山 楚雄 德宏
西藏 拉萨 日喀则 林芝 昌都 山南 那曲
陕西 西安 铜川 宝鸡 咸阳 渭南 延安 汉中 榆林 安康 商洛 蒲城<渭南
甘肃 兰州 嘉峪关 金昌 白银 天水 武威 张掖 平凉 酒泉 庆阳 定西 陇南 临夏 漳县<定西
青海 西宁 海东 格尔木
宁夏 银川 石嘴山 吴忠 固原 中卫
新疆 乌鲁木齐 克拉玛依 吐鲁番 哈密 昌吉 伊犁 阿克苏 喀什 和田 石河子 库尔勒
香港 港岛 九龙 新界
澳门
台湾 台北 台中 高雄 台南 新竹
"""

ABROAD = (
    "美国 加拿大 英国 法国 德国 日本 韩国 新加坡 马来西亚 泰国 越南 澳大利亚 澳洲 新西兰 意大利 西班牙 俄罗斯 荷兰 瑞士 瑞典 爱尔兰 迪拜 "
    "东京 大阪 首尔 纽约 洛杉矶 旧金山 西雅图 波士顿 芝加哥 伦敦 曼彻斯特 巴黎 柏林 慕尼黑 悉尼 墨尔本 多伦多 温哥华 曼谷 吉隆坡 莫斯科"
).split()

REGIONS = {
    "东北": "辽宁 吉林 黑龙江 内蒙古".split(),
    "华东": "上海 江苏 浙江 安徽 福建 江西 山东".split(),
    "江浙沪": "江苏 浙江 上海".split(),
    "江浙": "江苏 浙江".split(),
    "珠三角": ["广东"],
    "大湾区": "广东 香港 澳门".split(),
    "长三角": "上海 江苏 浙江 安徽".split(),
    "西北": "陕西 甘肃 青海 宁夏 新疆".split(),
    "川渝": "四川 重庆".split(),
}
"""Regions and the provinces that they may mean."""


@lru_cache(maxsize=1)
def known_places() -> dict[str, tuple[str, str | None]]:
    """Every known place with its province (itself for a province or a place abroad) and, if it is county-level, its
    prefecture."""
    places: dict[str, tuple[str, str | None]] = {}
    for line in _BY_PROVINCE.split("\n"):
        names = line.split()
        for name in names:
            place, _, prefecture = name.partition("<")
            places[place] = (names[0], prefecture or None)
    return places | {name: (name, None) for name in ABROAD}


def mentioned(text: str) -> list[str]:
    """The known places named in a text, e.g. the city line of a card."""
    return [name for name in known_places() if name in text]


def may_be_the_same(stated: str, own: list[str]) -> bool:
    """Whether a person of the places `own` (as on the card) may truly name `stated`.

    True if the texts contain each other, if one lies in the other, if the card knows only the province, or if the
    card's places are unknown here.
    """
    if any(stated in line or line in stated for line in own):
        return True
    card = [name for line in own for name in mentioned(line)]
    if not card:
        return True
    places = known_places()
    if stated in REGIONS:
        return any(places[name][0] in REGIONS[stated] for name in card)
    province, prefecture = places[stated]
    if stated == province or province in ("北京", "上海", "天津", "重庆", "香港"):
        return any(places[name][0] == province for name in card)
    if prefecture in card or any(places[name][1] == stated for name in card):
        return True
    in_province = [name for name in card if places[name][0] == province]
    return bool(in_province) and all(name == province for name in in_province)
