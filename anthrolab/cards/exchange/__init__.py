"""Cards to and from the formats of others: Character Cards V2 and V3, and the folders that AnthroDial's own code reads.

Lenient in, strict out: an import gives a valid card, or a draft that says what is missing; it invents nothing. What a
format holds and our cards have no place for stays in the card's `extensions` and is written back.
"""
