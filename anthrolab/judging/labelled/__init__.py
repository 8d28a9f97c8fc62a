"""The labelled set: gold dialogues, untouched or with one planted failure, each with what must fail in it and what must not."""
