"""The one base of every error that a user can mend."""


class AnthrolabError(Exception):
    """An error with a plain one-line message that names the file, the field and the fix.

    The command line prints the message without a traceback and exits with 2.
    """
