"""A person in the chat: a live session with a persona, told that it is an AI."""
