"""Masked autoencoders of images with one norm for all tokens and with separate norms: how well the CLS is read.

A small ViT of transformers' learns to restore the three quarters of an image's patches that it does not see (He et
al., CVPR 2022). Then its CLS is read: a linear probe, whose regularization is chosen on validation images, fine-tuning,
uniformity (Wang & Isola, ICML 2020) and effective rank (Roy & Vetterli, 2007), all on test images. Needs the extra
``images``:

    python examples/masked_images.py

The images are scikit-learn's digits, or ``--data FOLDER`` in a layout of torchvision's: STL10 (labelled images), SVHN,
Flowers102, FGVCAircraft, or ``train`` and ``test`` with a folder per class. torchvision is then needed too.

Axis letters: M images, C channels, H pixels high and wide, K classes, D width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from comparison import arguments, compare, linear_probe, positive, separated
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, top_k_accuracy_score
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm
from transformers import ViTMAEConfig, ViTMAEForPreTraining

from graphormer_sepnorm import reestimate_batch_norm
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.cls_geometry import effective_rank, uniformity
from graphormer_sepnorm.interfaces.guard import guarded

BATCH = 64
EVALUATION_BATCH = 256
BUT_THE_FIRST = r"^vit\.(?!.*\.0\.layernorm_before)"  # which sees the same CLS in every image


@dataclass(frozen=True)
class Images:
    """Images uint8 [M, C, H, H] with their classes int64 [M]."""

    pixels: Tensor
    classes: Tensor

    def batch(self, rows: Tensor) -> Tensor:
        """Some images as numbers between -1 and 1."""
        return self.pixels[rows].float() / 127.5 - 1


def split(pixels: Tensor, classes: Tensor, share: float) -> tuple[Images, Images]:
    """Two parts, the second of which has ``share`` of each class."""
    rows = train_test_split(torch.arange(len(classes)), test_size=share, stratify=classes, random_state=0)
    first, second = (Images(pixels[part], classes[part]) for part in rows)
    return first, second


def digits() -> dict[str, Images]:
    """The 1,797 digits of 8 x 8 pixels that come with scikit-learn; 60, 20 and 20 % of each class."""
    bunch = load_digits()
    pixels = torch.tensor(bunch.images * 255 / 16).to(torch.uint8).unsqueeze(1)
    rest, test = split(pixels, torch.tensor(bunch.target), 0.2)
    first, val = split(rest.pixels, rest.classes, 0.25)
    return {"train": first, "val": val, "test": test}


def from_folder(folder: Path, size: int) -> dict[str, Images]:
    """Images of a folder, scaled to ``size``; a fifth of the training images of each class is for validation.

    Raises:
        InputError: the folder has no layout that is known, or torchvision is missing.
    """
    try:
        from torchvision import datasets, transforms
    except ImportError:
        raise InputError("--data needs torchvision: install the version that fits the installed torch") from None
    layouts = {
        "stl10_binary": lambda part: datasets.STL10(folder, part),
        "train_32x32.mat": lambda part: datasets.SVHN(folder, part),
        "flowers-102": lambda part: datasets.Flowers102(folder, part),
        "fgvc-aircraft-2013b": lambda part: datasets.FGVCAircraft(folder, "trainval" if part == "train" else part),
        "train": lambda part: datasets.ImageFolder(folder / part),
    }
    read = next((read for name, read in layouts.items() if (folder / name).exists()), None)
    if read is None:
        raise InputError(f"{folder} holds none of {', '.join(layouts)}: see torchvision.datasets for the layouts")
    scaled = transforms.Compose([transforms.Resize((size, size)), transforms.PILToTensor()])

    def load(part: str) -> tuple[Tensor, Tensor]:
        pairs = [(scaled(image.convert("RGB")), label) for image, label in tqdm(read(part), f"reading {part}")]
        pixels, classes = zip(*pairs, strict=True)
        return torch.stack(pixels), torch.tensor(classes)

    try:
        first, val = split(*load("train"), 0.2)
        return {"train": first, "val": val, "test": Images(*load("test"))}
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{folder}: {error}") from None


def make_model(norm: str, images: Images, patch: int, width: int, layers: int) -> ViTMAEForPreTraining:
    _, channels, size, _ = images.pixels.shape
    config = ViTMAEConfig(
        image_size=size,
        patch_size=patch,
        num_channels=channels,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=2 * width,
        decoder_hidden_size=width // 2,
        decoder_num_hidden_layers=1,
        decoder_num_attention_heads=4,
        decoder_intermediate_size=width,
        initializer_range=width**-0.5,
    )
    model = ViTMAEForPreTraining(config)
    place(model)
    return separated(model, norm, BUT_THE_FIRST)


def place(model: ViTMAEForPreTraining) -> None:
    """Gives patches their positions, which transformers 5 leaves at zero in a model that it did not load."""
    embeddings = model.vit.embeddings
    embeddings.patch_embeddings.projection._is_hf_initialized = False  # or it takes them for loaded
    embeddings.initialize_weights()
    model.decoder.initialize_weights(embeddings.patch_embeddings.num_patches)


def batches(count: int) -> list[Tensor]:
    """Random batches of all rows but the last few; one of all if there are few."""
    whole = max(count // BATCH, 1)
    return list(torch.randperm(count)[: whole * BATCH].split(BATCH))


def train(model: nn.Module, count: int, epochs: int, lr: float, loss_of: Callable[[Tensor], Tensor], name: str) -> None:
    """Trains by ``loss_of``, the loss of some of ``count`` rows."""
    optimizer = torch.optim.AdamW(model.parameters(), lr, betas=(0.9, 0.95), weight_decay=0.05, fused=True)
    steps = epochs * len(batches(count))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps, pct_start=0.1)
    model.train()
    for _ in tqdm(range(epochs), name, leave=False):
        for rows in batches(count):
            optimizer.zero_grad()
            loss_of(rows).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()


class Classifier(nn.Module):
    """Classes of whole images, read off the CLS of an encoder that sees all patches.

    Args:
        encoder: of a masked autoencoder, which hides no patches from now on.
        num_classes: K.
    """

    def __init__(self, encoder: nn.Module, num_classes: int):
        super().__init__()
        encoder.config.mask_ratio = 0.0
        self.encoder = encoder
        self.head = nn.Linear(encoder.config.hidden_size, num_classes)

    def embed(self, x: Tensor) -> Tensor:
        """The CLS [M, D] of images x [M, C, H, H]."""
        return self.encoder(x).last_hidden_state[:, 0]

    def forward(self, x: Tensor) -> Tensor:
        """Logits [M, K]."""
        return self.head(self.embed(x))


@torch.no_grad()
def over_all(compute: Callable[[Tensor], Tensor], images: Images) -> Tensor:
    """The results of ``compute`` for all images, in their order."""
    parts = torch.arange(len(images.classes)).split(EVALUATION_BATCH)
    return torch.cat([compute(images.batch(rows)) for rows in parts])


def prepare(model: Classifier, seen: Images) -> None:
    """Puts the model into evaluation mode, with the statistics that whole training images give its BatchNorms."""
    reestimate_batch_norm(model, model.embed, map(seen.batch, batches(len(seen.classes))))


def probe(model: Classifier, images: dict[str, Images]) -> dict[str, float]:
    """Accuracy of a linear probe, uniformity and effective rank of the CLS of test images."""
    prepare(model, images["train"])
    embedded = {part: over_all(model.embed, found) for part, found in images.items()}
    parts = {part: (x.numpy(), images[part].classes.numpy()) for part, x in embedded.items()}
    x, y = parts["test"]
    found = accuracies(y, linear_probe(parts, "accuracy").predict_proba(x), "probe")
    return found | {"uniformity": uniformity(embedded["test"]), "effective rank": effective_rank(embedded["test"])}


def accuracies(y: np.ndarray, scores: np.ndarray, name: str) -> dict[str, float]:
    """Top-1 and, where there are more than five classes, top-5 accuracy of scores [M, K]."""
    found = {f"{name}, top-1": float(accuracy_score(y, scores.argmax(1)))}
    if scores.shape[1] > 5:
        classes = np.arange(scores.shape[1])
        found[f"{name}, top-5"] = float(top_k_accuracy_score(y, scores, k=5, labels=classes))
    return found


def fine_tune(model: Classifier, images: dict[str, Images], epochs: int) -> dict[str, float]:
    """Test accuracies of the whole model, trained further on the classes."""
    known, test = images["train"], images["test"]

    def loss(rows: Tensor) -> Tensor:
        return cross_entropy(model(known.batch(rows)), known.classes[rows])

    train(model, len(known.classes), epochs, 2e-3, loss, "fine-tuning")
    prepare(model, known)
    return accuracies(test.classes.numpy(), over_all(model, test).softmax(1).numpy(), "fine-tuned")


def main() -> None:
    parser = arguments(__doc__, "runs/masked-images")
    parser.add_argument("--data", type=Path, help="folder of images; default: scikit-learn's digits")
    parser.add_argument("--size", type=positive, default=64, help="to which images of --data are scaled")
    parser.add_argument("--patch", type=positive, help="pixels of a patch; default: an eighth of --size, digits 2")
    parser.add_argument("--width", type=positive, default=64)
    parser.add_argument("--layers", type=positive, default=3)
    parser.add_argument("--epochs", type=positive, default=30)
    parser.add_argument("--fine-tuning-epochs", type=positive, default=12)
    options = parser.parse_args()
    images = from_folder(options.data, options.size) if options.data else digits()
    size = images["train"].pixels.shape[-1]
    patch = options.patch or (max(size // 8, 1) if options.data else 2)
    if size % patch or options.width % 8:
        raise InputError(f"--patch {patch} must divide {size} pixels, and 8 --width {options.width}")
    num_classes = int(images["train"].classes.max()) + 1

    def measure(model: str, norm: str, seed: int) -> dict[str, float]:
        torch.manual_seed(seed)
        autoencoder = make_model(norm, images["train"], patch, options.width, options.layers)

        def loss(rows: Tensor) -> Tensor:
            return autoencoder(images["train"].batch(rows)).loss

        train(autoencoder, len(images["train"].classes), options.epochs, 2e-3, loss, "autoencoding")
        classifier = Classifier(autoencoder.vit, num_classes)
        return probe(classifier, images) | fine_tune(classifier, images, options.fine_tuning_epochs)

    setting = {name: str(value) for name, value in vars(options).items() if name not in ("seeds", "out")}
    compare(options.out, setting, ["ViT"], options.seeds, measure)


if __name__ == "__main__":
    guarded(main)
