"""``python -m partita``: the same program as the ``partita`` command."""

from partita.cli import main

if __name__ == "__main__":
    main.main()
