"""Training speed of Hugging Face's Graphormer (transformers 4.45.2) at the size of slim: one line of JSON.

Float32, AdamW, L1 loss, random batches of real molecules, which are read and prepared before the clock starts. `step`
is on batches that are collated before, `step_with_collate` adds `GraphormerDataCollator`.
"""

import argparse
import json
import random
import statistics
import time
from pathlib import Path

import torch
from peer_hf import peak_rss_mib, preprocess, read_molecules, shallow_copies, slim_model, to_graphs
from transformers.models.deprecated.graphormer.collating_graphormer import GraphormerDataCollator


def random_batches(items: list[dict], batch_size: int, count: int, rng: random.Random) -> list[list[dict]]:
    """`count` full batches drawn from as many shuffled passes over the items as it takes."""
    batches = []
    while len(batches) < count:
        order = rng.sample(items, len(items))
        starts = range(0, len(order) - batch_size + 1, batch_size)
        batches += [shallow_copies(order[start : start + batch_size]) for start in starts]
    return batches[:count]


def train(model, optimizer, batches: list[dict]) -> list[float]:
    losses = []
    for batch in batches:
        batch = {name: array.to(model.device) for name, array in batch.items()}
        labels = batch.pop("labels")
        loss = torch.nn.functional.l1_loss(model(**batch).logits.squeeze(1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, required=True, help="molecules: column `smiles` and the target's column")
    parser.add_argument("--target", default="penalized_logp", help="name of the target's column")
    parser.add_argument("--molecules", type=int, default=2000, help="molecules drawn from the CSV")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20, help="steps per repetition")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=3, help="steps before the first repetition")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="such as cuda; moving the batches there is timed")
    parser.add_argument("--max-hops", type=int, default=5, help="bonds of a path that enter the bias (HF: 5)")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    rng = random.Random(0)

    items = preprocess(to_graphs(read_molecules(args.csv, args.molecules, args.target)))
    if len(items) < args.batch_size:
        raise SystemExit(f"{len(items)} molecules do not fill one batch of {args.batch_size}")
    collate = GraphormerDataCollator()
    model = slim_model(args.max_hops).to(args.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    train(model, optimizer, [collate(batch) for batch in random_batches(items, args.batch_size, args.warmup, rng)])

    step_rates, total_rates, losses = [], [], []
    for _ in range(args.repeat):
        batches = random_batches(items, args.batch_size, args.steps, rng)
        start = time.perf_counter()
        collated = [collate(batch) for batch in batches]
        middle = time.perf_counter()
        losses += train(model, optimizer, collated)
        end = time.perf_counter()
        molecules = args.steps * args.batch_size
        step_rates.append(molecules / (end - middle))
        total_rates.append(molecules / (end - start))

    result = {
        "peer": "transformers 4.45.2 Graphormer",
        "step_molecules_per_s": round(statistics.median(step_rates), 1),
        "step_with_collate_molecules_per_s": round(statistics.median(total_rates), 1),
        "step_molecules_per_s_each": [round(rate, 1) for rate in step_rates],
        "peak_rss_mib": round(peak_rss_mib(), 1),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "l1_first_repetition": round(statistics.mean(losses[: args.steps]), 4),
        "l1_last_repetition": round(statistics.mean(losses[-args.steps :]), 4),
        "molecules": len(items),
        "batch_size": args.batch_size,
        "steps": args.steps,
        "repeat": args.repeat,
        "threads": args.threads,
        "max_hops": args.max_hops,
        "torch": torch.__version__,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
