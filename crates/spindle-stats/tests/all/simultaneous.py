"""How much wider than Student's t a simultaneous interval is: makes `src/spread/widening.rs`.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install numpy==2.4.6 scipy==1.17.1
    /tmp/reference/bin/python crates/spindle-stats/tests/all/simultaneous.py > crates/spindle-stats/src/spread/widening.rs

Equal cases are drawn with normal noise, in rounds; every pair of cases gets the statistic of `src/simultaneous`: mean
difference over the square root of the moderated variance by the rounds. The critical value is the quantile of the greatest
statistic of all pairs, the largest over patterns of noise: all cases alike; 1, 2, 3, half or all but one of them 2, 4, 10 or
infinitely many times as noisy as the rest; and each half as noisy as the one before. The table holds it divided by Student's
t quantile of a single pair.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "2"
import numpy as np
from scipy import stats

CASES = [3, 4, 5, 6, 8, 10, 14, 20]
ROUNDS = [2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 60, 200]
CHANCES = [0.05, 0.025, 0.01, 0.003]
PRIOR_ROUNDS = 2
LIMIT_CHANCE = 0.01
random = np.random.default_rng(20260101)


def patterns(cases):
    yield [1.0] * cases
    for factor in (2, 4, 10, np.inf):
        for noisy in sorted({1, 2, 3, cases // 2, cases - 1}):
            if noisy < cases:
                yield [1.0] * noisy + [1 / factor] * (cases - noisy)
    yield [2.0**-case for case in range(cases)]


def greatest(cases, rounds, draws):
    """The greatest statistic of each draw, for every pattern."""
    freedom = rounds - 1
    weight = freedom / (freedom + PRIOR_ROUNDS)
    limit = freedom / stats.chi2.ppf(LIMIT_CHANCE, freedom)
    first, second = np.triu_indices(cases, 1)
    all_patterns = [np.array(pattern) for pattern in patterns(cases)]
    found = [[] for _ in all_patterns]
    batch = max(200, int(4e6 / (cases * max(rounds, cases))))
    for begin in range(0, draws, batch):
        count = min(batch, draws - begin)
        values = random.standard_normal((count, rounds, cases))
        means = values.mean(1)
        values -= means[:, None]
        covariance = np.matmul(values.transpose(0, 2, 1), values) / freedom
        variances = np.einsum("bii->bi", covariance)
        for index, noise in enumerate(all_patterns):
            scaled = variances * noise**2
            own = scaled[:, first] + scaled[:, second]
            own -= 2 * covariance[:, first, second] * (noise[first] * noise[second])
            prior = np.minimum(own.mean(1)[:, None], limit * own)
            moderated = weight * own + (1 - weight) * prior
            difference = np.abs(means[:, first] * noise[first] - means[:, second] * noise[second])
            with np.errstate(all="ignore"):
                statistic = difference / np.sqrt(moderated / rounds)
            statistic[:, (noise[first] == 0) & (noise[second] == 0)] = 0
            found[index].append(statistic.max(1))
    return [np.concatenate(parts) for parts in found]


def main():
    print("//! Made by `tests/all/simultaneous.py`, which says how; see `simultaneous` for what it is.\n")
    print(f"/// Numbers of cases in [`WIDENING`].\npub(super) const CASES: [u32; {len(CASES)}] = {CASES};")
    print(f"/// Numbers of rounds.\npub(super) const ROUNDS: [u32; {len(ROUNDS)}] = {ROUNDS};")
    print(f"/// Chances of any error among all pairs.\npub(super) const CHANCES: [f64; {len(CHANCES)}] = {CHANCES};")
    print("/// Half the width of a simultaneous interval over that of a pair alone, at the same variance: by cases, rounds and chance.")
    print(f"pub(super) const WIDENING: [[[f64; {len(CHANCES)}]; {len(ROUNDS)}]; {len(CASES)}] = [")
    for cases in CASES:
        print("    [")
        for rounds in ROUNDS:
            draws = 200_000 if cases <= 6 and rounds <= 10 else 100_000 if cases <= 10 else 40_000
            tails = greatest(cases, rounds, draws)
            widening = []
            for chance in CHANCES:
                critical = max(np.quantile(tail, 1 - chance) for tail in tails)
                widening.append(critical / stats.t.ppf(1 - chance / 2, rounds - 1))
            print("        [" + ", ".join(f"{value:.3f}" for value in widening) + "],", flush=True)
        print("    ],")
    print("];")


main()
