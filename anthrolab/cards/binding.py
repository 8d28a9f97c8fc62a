"""The binding: two personas in one scenario. Expands into two cases (paper section 5.5)."""

from pydantic import Field, model_validator

from anthrolab.cards.persona import Card, CardId, Extensions


class Binding(Card):
    """`persona_a` plays side a of the scenario, `persona_b` side b."""

    id: CardId
    persona_a: CardId
    persona_b: CardId
    scenario: CardId
    extensions: Extensions = Field(default={})

    @model_validator(mode="after")
    def _two_people(self) -> "Binding":
        if self.persona_a == self.persona_b:
            raise ValueError("persona_a and persona_b are the same card; a chat needs two people")
        return self


class BindingFile(Card):
    """The content of `bindings.yaml`."""

    bindings: list[Binding] = Field(min_length=1)
