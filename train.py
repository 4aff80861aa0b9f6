"""Train on a dataset: python train.py --help."""

from graphormer_sepnorm.interfaces.cli import main

if __name__ == "__main__":
    main("train")
