"""Makes unpaired.json: what SciPy answers to the questions that unpaired.rs asks this crate.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scipy==1.17.1
    /tmp/venv/bin/python unpaired.py > unpaired.json
"""

import json
import math

import numpy
import scipy
from scipy import stats

random = numpy.random.default_rng(1947)


def welch(a, b):
    result = stats.ttest_ind(numpy.log(a), numpy.log(b), equal_var=False)
    interval = result.confidence_interval(0.95)
    return {
        "a": a,
        "b": b,
        "ratio": stats.gmean(a) / stats.gmean(b),
        "ci95": [math.exp(interval.low), math.exp(interval.high)],
        "p_value": result.pvalue,
    }


def noisy(level, noise, rounds):
    return [round(v, 3) for v in level * numpy.exp(noise * random.standard_normal(rounds))]


pairs = [welch(noisy(1000 * ratio, noise_a, rounds_a), noisy(1000, noise_b, rounds_b))
         for ratio, noise_a, noise_b, rounds_a, rounds_b in (
    (1.0, 0.05, 0.05, 2, 2), (1.0, 0.01, 0.2, 3, 3), (1.05, 0.02, 0.02, 3, 5), (0.9, 0.03, 0.01, 8, 3),
    (2.0, 0.1, 0.1, 30, 12), (1.001, 0.0005, 0.2, 4, 40), (0.5, 0.02, 0.02, 5, 5), (1.1, 0.001, 0.001, 3, 3),
)]
lines = [json.dumps(pair, default=float) for pair in pairs]
print(f'{{"made_by": "scipy {scipy.__version__}, numpy {numpy.__version__}", "pairs": [\n' + ",\n".join(lines) + "\n]}")
