"""Runs the command as ``python -m graphormer_sepnorm``, where the console script is not on the path."""

from graphormer_sepnorm.interfaces.cli import main

if __name__ == "__main__":
    main()
