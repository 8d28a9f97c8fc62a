"""L0-06: what the speaker says of their own age, gender, city, occupation or relationship status against the card."""

from collections.abc import Sequence

from anthrolab.cards.persona import Persona
from anthrolab.judging.l0.facts import age, city, gender, occupation, relationship
from anthrolab.judging.l0.framing import plain

TRIGGER = (
    "大老爷们|我[\u4e00-\u9fff]{2,4}的(?=$|[，,。\s！!])|我(?:程序员|码农|公务员|学生党|大学生|研究生|高中生)|我(?:的)?(?:职业|工作|本职)是|我[^，,。]{0,6}[\\d一二两三四五六七八九十廿]|岁|[05零]后|本人|属虎|我(?:是|就是|也是|其实是|可是|真是|毕竟是|只是|才是|还是)|"
    "我们?一个|我们|我这个?|我作为|身为|我[男女]的|大男人|大姨妈|怀孕|例假|月经|姨妈|痛经|产检|坐月子|前列腺|胡子|宝妈|"
    "我[^，,。]{0,4}(?:在|住|人|来|搬|家)|我[^，,。]{0,4}(?:教|当|做|搞|干|开|跑|送|上|读|念|退休|大[一二三四]|高[一二三]|研[一二三])|单身|单着|"
    "光棍|母胎|没结|没对象|没有|没男|没女|未婚|没嫁|没老|结婚|已婚|离婚|离异|离过|前夫|前妻|守寡|丧偶|老公|老婆|媳妇|丈夫|妻子|先生|太太|"
    "男朋友|女朋友|对象|男友|女友|男票|女票|脱单|恋爱|老伴"
)


def find(text: str, persona: Persona, year: int | None = None, recent: Sequence[str] = ()) -> list[str]:
    """Each contradiction as `span (card: value)`, at most one for each fact.

    `year` is the calendar year of the chat, for 我是95后; without it such statements are not compared.
    `recent` are the messages before: a bare 我都32了 among scores and levels is no age.
    """
    facts, flat = persona.hard_facts, plain(text)
    found = (
        (age.contradiction(flat, facts.age, year, recent), f"age {facts.age}"),
        (gender.contradiction(flat, facts.gender), f"gender {facts.gender}"),
        (city.contradiction(flat, [*facts.city, persona.city]), f"city {'/'.join(facts.city)}"),
        (
            occupation.contradiction(flat, [*facts.occupation, persona.occupation]),
            f"occupation {'/'.join(facts.occupation)}",
        ),
        (
            relationship.contradiction(flat, facts.relationship_status, facts.gender),
            f"relationship status {facts.relationship_status}",
        ),
    )
    return [f"{text[span[0] : span[1]]} (card: {card})" for span, card in found if span]
