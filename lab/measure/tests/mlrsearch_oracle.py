"""What the authors' MLRsearch finds on a simulated device, as JSON: [[lower bound, conditional throughput], ...].

Usage: mlrsearch_oracle.py CAPACITY NOISE SEED. The goals are CSIT's NDR and PDR. Ends with 77 if the package is missing:
    python3 -m venv V && V/bin/pip install MLRsearch==1.2.1
"""

import json
import sys

try:
    from MLRsearch import (
        AbstractMeasurer,
        Config,
        MeasurementResult,
        MultipleLossRatioSearch,
        SearchGoal,
    )
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)

MASK = (1 << 64) - 1


class Device(AbstractMeasurer):
    """Forwards `capacity` frames a second, in each trial up to `noise` less (SplitMix64)."""

    def __init__(self, capacity, noise, seed):
        self.capacity, self.noise, self.state = capacity, noise, seed

    def measure(self, intended_duration, intended_load):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        unit = ((z ^ (z >> 31)) >> 11) / (1 << 53)
        capacity = self.capacity * (1.0 - self.noise * unit)
        offered = int(intended_load * intended_duration)
        forwarded = min(offered, int(capacity * intended_duration))
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=offered,
            forwarding_count=forwarded,
        )


def main():
    capacity, noise, seed = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    goals = [SearchGoal(loss_ratio=ratio) for ratio in (0.0, 0.005)]
    config = Config()
    config.min_load = 1000.0
    config.max_load = 1e7
    config.goals = goals
    config.search_duration_max = 1e6
    config.warmup_duration = None
    results = MultipleLossRatioSearch(config).search(
        measurer=Device(capacity, noise, seed), debug=lambda _text: None
    )
    told = []
    for goal in goals:
        result = results[goal]
        throughput = result.conditional_throughput
        told.append([float(result.relevant_lower_bound), float(throughput)])
    print(json.dumps(told))


main()
