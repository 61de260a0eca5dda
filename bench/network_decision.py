"""Times one rule decision among many rules; run by bench/network.py with the interpreter of the doorward it measures.

    network_decision.py RULES    prints the median of seven batches, in microseconds of CPU time a decision
"""

from __future__ import annotations

import sys
import time
from statistics import median

from doorward.allowlists.host import parse_host
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet

FORMS = ("h{n}.site{m}.test", "*.z{n}.test:8443", "**.y{n}.test", "x{n}.deep.name.test:8000-9000", "203.0.{m}.{k}")
ASKED = (("h0.site0.test", 443), ("a.b.y2.test", 80), ("x3.deep.name.test", 8500), ("nowhere.test", 443))
BATCH = 2_000


def main(count: int) -> float:
    """Microseconds of CPU time a decision, over names that are allowed and one that is not."""
    origin = Origin("flag", "--allow")
    texts = (FORMS[n % len(FORMS)].format(n=n, m=n % 250, k=n // 250 % 250) for n in range(count))
    rules = RuleSet.build([parse_rule(text, "allow", origin) for text in texts], [])
    hosts = [(parse_host(name), port) for name, port in ASKED]
    batches = []
    for _ in range(7):
        start = time.process_time()
        for _ in range(BATCH):
            for host, port in hosts:
                rules.decide(host, port)
        batches.append((time.process_time() - start) / BATCH / len(hosts))
    return median(batches) * 1e6


if __name__ == "__main__":
    print(f"{main(int(sys.argv[1])):.3f}")
