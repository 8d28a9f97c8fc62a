"""`python -m anthrolab` is the command line."""

from anthrolab.cli import main

main()
