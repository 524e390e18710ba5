"""Makes reference.json: what SciPy and NumPy answer to the questions that reference.rs asks this crate.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scipy==1.17.1 statsmodels==0.15.0
    /tmp/venv/bin/python reference.py > reference.json
"""

import json
import math

import numpy
import scipy
import statsmodels
import statsmodels.api
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

random = numpy.random.default_rng(2004)
MARGIN = 0.03
MAX_ROUNDS = 1000
ROUNDS_TO_JUDGE = 3


def mean_interval(values):
    result = stats.ttest_1samp(values, 0.0)
    interval = result.confidence_interval(0.95)
    return {"values": values, "mean": numpy.mean(values), "ci95": [interval.low, interval.high]}


def decided(low, high):
    return (1 - MARGIN <= low and high <= 1 + MARGIN) or low > 1 or high < 1


def rounds_needed(logs):
    """By trying every number of rounds, where the crate bisects."""
    mean, deviation = numpy.mean(logs), numpy.std(logs, ddof=1)
    difference = max(abs(mean), math.log1p(MARGIN))
    for rounds in range(max(len(logs) + 1, ROUNDS_TO_JUDGE), MAX_ROUNDS):
        quantiles = stats.t.ppf(0.975, rounds - 1) + stats.t.ppf(0.95, rounds - 1)
        if quantiles * deviation / math.sqrt(rounds) <= difference:
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
        "rounds_needed": None if len(a) >= ROUNDS_TO_JUDGE and decided(low, high) else rounds_needed(logs),
    }


def noisy_pair(ratio, noise, rounds):
    level = 1000 * numpy.exp(0.1 * random.standard_normal(rounds))
    a = ratio * level * numpy.exp(noise * random.standard_normal(rounds))
    b = level * numpy.exp(noise * random.standard_normal(rounds))
    return paired([round(v, 3) for v in a], [round(v, 3) for v in b])


def trend(rounds, values):
    """Ordinary least squares by statsmodels."""
    fit = statsmodels.api.OLS(numpy.log(values), statsmodels.api.add_constant(numpy.array(rounds, float))).fit()
    low, high = fit.conf_int(0.05)[1]
    return {
        "rounds": rounds,
        "values": values,
        "factor_per_round": math.exp(fit.params[1]),
        "ci95": [math.exp(low), math.exp(high)],
        "p_value": fit.pvalues[1],
    }


def noisy_trend(slope, noise, rounds):
    more = numpy.random.default_rng(len(rounds))
    return trend(rounds, [round(1000 * math.exp(slope * r + noise * more.standard_normal()), 3) for r in rounds])


def holm(p_values):
    return {"p_values": p_values, "adjusted": multipletests(p_values, method="holm")[1].tolist()}


def mser5(samples):
    """The cut of MSER-5 by the definition, through numpy's variance."""
    batches = numpy.array(samples[: len(samples) // 5 * 5]).reshape(-1, 5).mean(axis=1)
    errors = [batches[cut:].var() / len(batches[cut:]) for cut in range(len(batches) - 5 + 1)]
    cut = int(numpy.argmin(errors))
    return {"samples": samples, "steady_after": 5 * cut if cut <= len(batches) / 4 else None}


def throughput(seed, rise, wander):
    """An exponential rise from half the speed, with noise that hangs together."""
    more, level, samples = numpy.random.default_rng(seed), 0.0, []
    for index in range(140):
        level = 0.8 * level + wander * more.standard_normal()
        samples.append(round(1000 * (1 - 0.5 * math.exp(-index / rise)) + level, 1))
    return mser5(samples)


def to_find(difference, spread):
    """By the noncentral t, where the crate has a sum of two quantiles."""
    power = lambda n: TTestPower().power(math.log1p(difference) / spread, n, 0.05, alternative="two-sided")
    return {"difference": difference, "spread": spread, "rounds": next(n for n in range(2, 1000) if power(n) >= 0.95)}


def interval97(values):
    interval = stats.ttest_1samp(numpy.log(values), 0.0).confidence_interval(0.97)
    return {"values": values, "ci": [math.exp(interval.low), math.exp(interval.high)]}


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
    "statsmodels": statsmodels.__version__,
    "trends": [
        noisy_trend(0.0, 0.02, [1, 2, 3, 4]),
        noisy_trend(-0.02, 0.01, [1, 2, 3, 4, 5, 6]),
        noisy_trend(-0.001, 0.05, [1, 2, 4, 5, 7, 8, 9]),
        noisy_trend(0.01, 0.03, list(range(1, 31))),
    ],
    "holm": [holm(p) for p in ([0.04, 0.01, 0.03, 0.5], [0.2], [0.01, 0.01, 0.9, 0.002, 0.06, 0.3])],
    "steady_states": [throughput(*v) for v in ((1, 0.01, 20), (2, 10, 20), (3, 20, 5), (4, 60, 5), (5, 150, 20), (6, 1, 100))],
    "rounds_to_find": [to_find(*v) for v in (
        (0.05, 0.014), (0.05, 0.03), (0.05, 0.07), (0.02, 0.03), (0.1, 0.02), (0.5, 0.1), (0.03, 0.04))],
    "looked_at_after_every_round": [interval97(v) for v in (
        [1.02, 0.99, 1.05, 1.01, 1.03, 1.02], [2.0, 1.8, 2.2, 1.95, 2.05, 2.1, 1.9])],
}

lines = [f"{json.dumps(key)}: {json.dumps(value, default=float)}" for key, value in reference.items()]
print("{\n" + ",\n".join(lines) + "\n}")
