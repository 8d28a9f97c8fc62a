"""What the writer is asked: the same instructions for every card of a kind, then what the slot asks for, and after a rejection the
last draft with every reason. Texts of cards and replies stand in fences (`models.fence`): they are data, whatever they say."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template

from anthrolab.cards.exchange.files import yaml_text
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Category
from anthrolab.loop.drafting.plan import YEAR, PersonaSlot, ScenarioSlot
from anthrolab.loop.drafting.reading import Reason
from anthrolab.models.client import Request
from anthrolab.models.fence import fenced, quoted
from anthrolab.models.systems import System

SHOWN_DRAFT = 6000
"""Characters of a rejected draft that its writer is shown again."""
SHOWN_TAKEN = 24
"""Lines of what others have already."""

OCCUPATIONS: dict[str, str] = {
    "retired": "退休（以“退休”开头，写从前做什么）",
    "pupil or student": "在上学（初一到高三的学生、大一到大四、研究生；写明年级，写“学生”或“在读”）",
    "no paid work": "没有正式收入（全职妈妈、家庭主妇、待业、失业之类，要有这样的字）",
    "health": "医疗护理（医生、护士、护工、药店、康复、保健之类）",
    "education": "教书带孩子（老师、教练、辅导员、保育员之类）",
    "science and engineering": "工程技术（程序员、工程师、测绘、运维、设计、研究之类）",
    "farming and fishing": "种地、养殖、打鱼、果园、茶园、放牧之类",
    "driving and delivery": "开车送货（司机、外卖骑手、快递、货车、船上、铁路、调度之类）",
    "factory and building": "厂里工地（流水线、电工、焊工、木工、装修、汽修、裁缝之类）",
    "shop, food and lodging": "店里（开店、超市、厨师、餐馆、销售、理发、民宿、摆摊、外贸之类）",
    "office, finance and public service": "坐办公室、窗口（会计、银行、保险、社区、物业、文员、人事、公务员、警察之类）",
    "media and culture": "文化传媒（编辑、记者、电台、导游、摄影、画画、翻译、博物馆之类）",
}
"""What the groups of `cards.statistics` are called in a prompt, with words by which they are known."""
CATEGORIES: dict[Category, str] = {
    "Sport": "体育（自己打球跑步，看比赛，队里的事）",
    "Relation": "关系（熟不熟、近不近的事：刚认识的，生分了的，没说破的）",
    "Interest": "兴趣爱好（手艺、收藏、养花、钓鱼、听戏、做饭这些）",
    "Pet/Fam.": "宠物和家里（猫狗牲口，家里的老人和琐事）",
    "Parenting": "带孩子和家庭（上学、作业、生病、隔代带养）",
    "Work": "工作上的事（交接、排班、客户、领导、进货）",
    "Emotion": "心里不好受，想找人说说",
    "News": "新闻时事（听来的、看来的一件事，跟自己有点关系；不编真人真事）",
    "Daily": "日常闲聊（吃饭、天气、快递、路上看见的）",
    "Game": "游戏（手游、棋牌、一起开黑、公会的事）",
    "Tech": "手机电脑数码（不会用、坏了、要买哪个、新出的功能）",
    "Finance": "钱（工资、借钱、房租、保险、存款、买卖）",
}
"""What the categories are called in a prompt."""
_WEEKDAYS = "一二三四五六日"


@cache
def prompt(name: str) -> Template:
    """A prompt file of this package."""
    return Template((files("anthrolab.loop.drafting") / "prompts" / f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))


def persona_question(slot: PersonaSlot, occupations: Sequence[str], catchphrases: Sequence[str]) -> str:
    """What is asked for a persona. occupations: of people of the same group, to be told apart from; catchphrases: that enough
    people have."""
    return prompt("persona_ask").substitute(
        name=slot.name, gender=slot.gender, age=slot.age, born=YEAR - slot.age, status=slot.status, province=slot.province,
        occupation=OCCUPATIONS[slot.quota["occupation group"]], setting="住在村里" if slot.quota["setting"] == "village" else "住城里或镇上",
        others=_taken("这一类里已经有这些人，换一个行当或换一种干法：", occupations) + _taken("这些口头话别人用够了，不要用：", catchphrases),
    )  # fmt: skip


def scenario_question(slot: ScenarioSlot, people: Mapping[str, Persona], titles: Sequence[str]) -> str:
    """What is asked for a scenario. people: by id, those of its pairs at least; titles: of the same category, taken already."""
    cards = []
    for number, pair in enumerate(slot.pairs, 1):
        for side, key in zip("ab", pair, strict=True):
            label = f"PERSONA_{side.upper()}" + (f"_{number}" if len(slot.pairs) > 1 else "")
            which = f"第{number}对的 {side}" if len(slot.pairs) > 1 else f" {side} "
            cards.append(f"演{which}的人：\n" + fenced(label, _shown(people[key])))
    shared = prompt("shared").substitute(count=len(slot.pairs)) + "\n" if len(slot.pairs) > 1 else ""
    return prompt("scenario_ask").substitute(
        category=CATEGORIES[slot.category], start=f"{slot.start:%Y-%m-%d %H:%M}", weekday=f"星期{_WEEKDAYS[slot.start.weekday()]}",
        horizon=slot.horizon_minutes, remote="不在一处，只靠手机" if slot.remote else "在同一个地方，但是用手机说话", opener=slot.opener,
        cards="\n\n".join(cards), shared=shared, others=_taken("这一类里已经有这些题目，写别的事：", titles),
    )  # fmt: skip


def draft_request(writer: System, kind: str, slot_id: str, question: str, attempt: int, last: tuple[str, Sequence[Reason]] | None) -> Request:
    """The request of an attempt (from 1). last: the rejected draft before it, as text, and all reasons against it.

    The writer's own sampling, not a judge's: hundreds of cards drawn greedily sound alike.
    """
    if last is not None:
        draft, reasons = last
        again = prompt("again").substitute(
            draft=fenced("DRAFT", draft[:SHOWN_DRAFT].splitlines() or [""]),
            reasons=fenced("REASONS", [reason.said for reason in reasons]),
        )
        question = f"{question}\n\n{again}"
    messages = [{"role": "system", "content": prompt(kind).template}, {"role": "user", "content": question}]
    roomy = writer.model_copy(update={"max_tokens": writer.judge_max_tokens})
    return roomy.request(messages=messages, salt=f"draft/{slot_id}/{attempt}")


def _shown(persona: Persona) -> list[str]:
    """A card as the writer of a scenario reads it; hard_facts say nothing that the rest does not."""
    return yaml_text(persona.model_dump(exclude={"id", "hard_facts", "extensions"})).splitlines()


def _taken(what: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return f"{what}\n{fenced('TAKEN', [quoted(line) for line in lines[-SHOWN_TAKEN:]])}\n"
