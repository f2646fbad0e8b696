"""`python -m pie` is `pie`."""

from pie.cli import main

main()
