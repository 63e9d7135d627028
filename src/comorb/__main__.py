"""``python -m comorb`` is the command line."""

from comorb.cli.app import main

if __name__ == "__main__":
    main()
