"""Train on a dataset: python train.py --help."""

from graphormer_sepnorm.interfaces.cli import run_alone

if __name__ == "__main__":
    run_alone("train")
