"""`python -m fairlead`, and the command `fairlead`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C while it still loads is one like any other."""
    try:
        from fairlead.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
