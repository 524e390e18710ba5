"""Makes reference.json: what SciPy and NumPy answer to the questions that reference.rs asks this crate.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scipy==1.17.1
    /tmp/venv/bin/python reference.py > reference.json
"""

import json
import math

import numpy
import scipy
from scipy import stats

random = numpy.random.default_rng(2004)
MARGIN = 0.03
MAX_ROUNDS = 1000


def mean_interval(values):
    result = stats.ttest_1samp(values, 0.0)
    interval = result.confidence_interval(0.95)
    return {"values": values, "mean": numpy.mean(values), "ci95": [interval.low, interval.high]}


def decided(low, high):
    return (1 - MARGIN <= low and high <= 1 + MARGIN) or low > 1 or high < 1


def rounds_needed(logs):
    """By trying every number of rounds, where the crate bisects."""
    mean, deviation = numpy.mean(logs), numpy.std(logs, ddof=1)
    for rounds in range(len(logs), MAX_ROUNDS):
        half_width = stats.t.ppf(0.975, rounds - 1) * deviation / math.sqrt(rounds)
        if decided(math.exp(mean - half_width), math.exp(mean + half_width)):
            return rounds
    return MAX_ROUNDS


def paired(a, b):
    result = stats.ttest_rel(numpy.log(a), numpy.log(b))
    interval = result.confidence_interval(0.95)
    low, high = math.exp(interval.low), math.exp(interval.high)
    logs = numpy.log(a) - numpy.log(b)
    return {
        "a": a,
        "b": b,
        "ratio": stats.gmean(a) / stats.gmean(b),
        "ci95": [low, high],
        "p_value": result.pvalue,
        "rounds_needed": None if decided(low, high) else rounds_needed(logs),
    }


def noisy_pair(ratio, noise, rounds):
    level = 1000 * numpy.exp(0.1 * random.standard_normal(rounds))
    a = ratio * level * numpy.exp(noise * random.standard_normal(rounds))
    b = level * numpy.exp(noise * random.standard_normal(rounds))
    return paired([round(v, 3) for v in a], [round(v, 3) for v in b])


latencies = [int(v) for v in random.lognormal(math.log(2e6), 1.2, 600)]

reference = {
    "made_by": f"scipy {scipy.__version__}, numpy {numpy.__version__}",
    "margin": MARGIN,
    # For 1 to 999 degrees of freedom.
    "t_quantiles": [stats.t.ppf(0.975, df) for df in range(1, 1000)],
    "means": [mean_interval(v) for v in (
        [31961.0, 35367.0],
        [19097.0, 20305.0, 19850.5],
        [0.1, 0.2, 0.4, 0.8, 1.6],
        [-3.0, 1e-3, 12.5, 7.25, -0.5, 2.0, 2.0],
        [round(v, 4) for v in random.normal(500, 20, 30)],
    )],
    "pairs": [noisy_pair(ratio, noise, rounds) for ratio, noise, rounds in (
        (1.0, 0.05, 2), (1.0, 0.01, 3), (1.0, 0.05, 3), (1.0, 0.002, 5), (1.05, 0.02, 3), (1.02, 0.02, 4),
        (1.1, 0.01, 5), (0.9, 0.03, 3), (0.5, 0.10, 10), (1.3, 0.2, 6), (1.0, 0.2, 8), (1.005, 0.3, 9), (3.0, 0.05, 3),
    )],
    "latencies": {
        "values_ns": latencies,
        "percentiles_ns": {str(q): float(numpy.percentile(latencies, q, method="inverted_cdf"))
                           for q in (1, 25, 50, 90, 95, 99, 99.9, 100)},
        "mean_ns": float(numpy.mean(latencies)),
    },
}

lines = [f"{json.dumps(key)}: {json.dumps(value, default=float)}" for key, value in reference.items()]
print("{\n" + ",\n".join(lines) + "\n}")
