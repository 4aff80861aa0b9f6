"""The command where no script is on the path: python -m graphormer_sepnorm."""

from graphormer_sepnorm.interfaces.cli import main

if __name__ == "__main__":
    main()
