"""Whether every claim about a cluster holds: random worlds, our rules, and Kubernetes' own filters as the referee.

    worlds      a random cluster and a workload in it
    controller  the pods that the workload's controller makes of it, and which run
    referee     questions to the oracle: in every order, how many pods find a node
    readings    what each rule claims in words and numbers, one function a rule
    together    which workloads count each other, and whether their terms differ as it is said
    verdicts    what the referee says of a finding, and of its fix
    silences    where pods have no place and no rule speaks: why
    shrink      the smallest world in which a contradiction stays

It shares no code with the rules: what a finding says is read from its text and its edits.
"""
