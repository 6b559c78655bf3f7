"""Compares the figures of a program that records itself with those of one that does not, alternately."""
import math
import statistics
import tempfile


def measure(measured, rounds):
    """Returns, for each round, what measured(folder, record) returns with and without recording."""
    pairs = []
    for turn in range(rounds):
        pair = {}
        for record in (True, False) if turn % 2 else (False, True):
            with tempfile.TemporaryDirectory(prefix="rose-bench-") as folder:
                pair[record] = measured(folder, record)
        pairs.append(pair)
    return pairs


def show(pairs, of, figures):
    """Prints a Markdown table of the ratios. `figures` contains the name and the unit of each figure."""
    print("| what | measured |\n|---|---|")
    for at, (what, unit) in enumerate(figures):
        ratios = [math.log(pair[True][at] / pair[False][at]) for pair in pairs]
        mean = statistics.mean(ratios)
        spread = 1.96 * statistics.stdev(ratios) / math.sqrt(len(pairs)) if len(pairs) > 1 else 0
        print(f"| {what} of {of}, all recorded ÷ not, {len(pairs)} rounds | {math.exp(mean):.2f} "
              f"[{math.exp(mean - spread):.2f}–{math.exp(mean + spread):.2f}] "
              f"({statistics.median(pair[False][at] for pair in pairs):.4g} {unit} without) |")
