"""`python -m hetenv.cli`."""

from hetenv.cli import main

if __name__ == "__main__":
    main()
