"""Measure reviews of large workloads, and their effect on other reviews.

    python -m bench.workload_reviews [--rate 5]

The webhook watches 150,000 pods on 5,000 nodes (`bench.events`). The client sends 100 ordinary reviews a second, in
turns alone and together with ``--rate`` reviews a second of a Deployment of 100 replicas with two hard constraints. The
server has one core, the client the other. Needs Go and taskset.
"""

import argparse
import concurrent.futures
import json

from bench.events import beside_a_cluster, printed
from bench.serve import BODY, load

OTHERS = 100  # a second


def large():
    """Return the review of a new Deployment of 100 replicas."""
    review = json.loads(BODY)
    made = review["request"]["object"]
    review["request"] |= {"name": "large", "operation": "CREATE", "oldObject": None}
    made["metadata"] |= {"name": "large"}
    labels = {"app": "large"}
    template = made["spec"]["template"]
    template["metadata"]["labels"] = labels
    keys = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
    template["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
        for key in keys
    ]
    made["spec"] |= {"replicas": 100, "selector": {"matchLabels": labels}}
    return json.dumps(review).encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rate", type=int, default=5)
    given = parser.parse_args()
    results = {"others, alone": [], "others, beside": [], "100 replicas": []}
    with beside_a_cluster(given.pods) as servers, concurrent.futures.ThreadPoolExecutor(1) as threads:
        second = servers.directory / "large"
        second.mkdir()
        (second / "ca.crt").write_bytes((servers.directory / "ca.crt").read_bytes())
        (second / "review.json").write_bytes(large())

        def ask(directory, rate):
            asking = {"connections": 8, "rate": rate, "seconds": given.seconds}
            return load(servers.program, directory, servers.ours, **asking)

        for _ in range(given.rounds):
            results["others, alone"].append(ask(servers.directory, OTHERS))
            beside = threads.submit(ask, second, given.rate)
            results["others, beside"].append(ask(servers.directory, OTHERS))
            results["100 replicas"].append(beside.result())
    print(f"{OTHERS} and {given.rate} reviews/s, {given.pods} pods, {given.rounds} rounds; p50 / p99 ms")
    printed(results)


if __name__ == "__main__":
    main()
